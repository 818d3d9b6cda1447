"""The frame of one response: what is the same on every page, taken from the request.

A route takes `RequestedFrame` as a parameter and hands it to the renderer.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query, Request

from poller.presentation.health import Health
from poller.web.pages.frame import navigation, themes
from poller.web.pages.frame.navigation import Entry
from poller.web.pages.frame.themes import Theme


@dataclass(frozen=True, slots=True)
class Frame:
    """The address of a page, the theme of its reader, and the health of the fleet."""

    path: str = ""  # below the root, without a slash at its start
    query: Sequence[tuple[str, str]] = ()
    theme: Theme = Theme.SYSTEM
    theme_in_address: bool = False  # the browser then remembers it
    refresh_s: int = 0  # for browsers without scripts; 0: never
    health: Health | None = None  # None: not known yet

    @property
    def root(self) -> str:
        """The relative path from this page to the overview: the site may be below another one."""
        return "../" * self.path.count("/")

    @property
    def alarm(self) -> str:
        """The start of the title of a tab: `(41) `, or "" while nothing fails."""
        return self.health.title.removesuffix("poller") if self.health else ""

    @property
    def entry(self) -> Entry | None:
        """The entry of the navigation that this page belongs to."""
        holding = (entry for entry in navigation.ENTRIES if entry.holds(self.path))
        return max(holding, key=lambda entry: len(entry.path), default=None)

    def url(self, **changes: object) -> str:
        """The address of this page with some parameters changed; an empty value removes one."""
        kept = [(key, value) for key, value in self.query if key not in changes]
        given = [(key, str(value)) for key, value in changes.items() if value]
        return f"?{urlencode([*kept, *given])}"


def at_once(request: Request, theme: Theme | None = None, refresh_s: int = 0) -> Frame:
    """The frame without a wait: its health is that of the last page that was shown."""
    latest = request.app.state.snapshots.latest
    return Frame(
        path=request.url.path.lstrip("/"),
        query=tuple(request.query_params.multi_items()),
        theme=theme or themes.from_cookies(request.cookies),
        theme_in_address=theme is not None,
        refresh_s=refresh_s,
        health=latest.health if latest else None,
    )


async def _requested(
    request: Request,
    theme: Theme | None = None,
    refresh: Annotated[int, Query(ge=0, le=3600)] = 0,
) -> Frame:
    await request.app.state.snapshots.get()
    return at_once(request, theme, refresh)


#: A parameter of a route: FastAPI makes it from the address, the cookies and the last snapshot.
RequestedFrame = Annotated[Frame, Depends(_requested)]
