"""Renders views as HTML with the templates. Rendering reads neither stores nor clocks."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import jinja2
from fastapi.responses import HTMLResponse

from poller.domain.access.scopes import Scope
from poller.presentation import formatting
from poller.presentation.health import GLYPHS
from poller.service.fleet.device_listing import PAGE_SIZES
from poller.web.access import visitor
from poller.web.assets import Assets
from poller.web.pages.fleet import overview_page, overview_tables
from poller.web.pages.fleet.devices_query import COLUMNS
from poller.web.pages.frame import navigation, themes
from poller.web.pages.frame.navigation import Entry, Group
from poller.web.pages.frame.page_frame import Frame
from poller.web.pages.frame.themes import Theme


@dataclass(frozen=True, slots=True)
class ErrorView:
    """A request that failed: what was wrong, what to do, and where to go on."""

    title: str
    message: str
    hint: str = ""
    more: str = ""  # another sentence
    ways: Sequence[tuple[str, str]] = ()  # text and address below the root of the site


@dataclass(frozen=True, slots=True)
class LoginView:
    """The login page: why the last try failed, why nobody can log in, and where to go after."""

    message: str = ""
    note: str = ""
    after: str = ""
    has_provider: bool = False


class PageRenderer:
    """The compiled templates, with the values that are the same for all pages."""

    def __init__(self, assets: Assets, links: Mapping[str, str]) -> None:
        self._environment = jinja2.Environment(
            loader=jinja2.PackageLoader("poller.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_without_controls,
            trim_blocks=True,
            lstrip_blocks=True,
            auto_reload=False,
        )
        self._environment.filters["capitalize_first"] = _capitalized
        self._environment.filters["word"] = shlex.quote  # a name in a command that is copied
        self._environment.globals.update(
            assets=assets,
            links=_web_links(links),
            tables={table.id: table for table in overview_tables.ALL},
            states={state: GLYPHS[tone] for state, tone in overview_page.STATES.items()},
            glyphs={tone.value: glyph for tone, glyph in GLYPHS.items()},
            themes=list(Theme),
            columns=COLUMNS,
            sizes=PAGE_SIZES,
            groups=list(navigation.Group),
            permitted=_permitted,
            visitor=visitor.current,
            may=_may,
            has_search=any(entry.path == "devices" for entry in navigation.ENTRIES),
        )

    def html(self, template: str, frame: Frame, **values: Any) -> str:
        """Render a template, such as `jobs.html`, which extends `frame.html`."""
        return self._environment.get_template(template).render(frame=frame, **values)

    def respond(
        self,
        template: str,
        frame: Frame,
        status_code: int = 200,
        headers: Mapping[str, str] | None = None,
        **values: Any,
    ) -> HTMLResponse:
        """Answer with a page, and let the browser remember a theme of the address."""
        response = HTMLResponse(self.html(template, frame, **values), status_code, headers)
        if frame.theme_in_address:
            themes.store(frame.theme, response)
        return response


def _may(scope: str, every_site: bool = False) -> bool:
    """Whether the visitor has a right: what one may not do is not shown."""
    who = visitor.current()
    return who is not None and who.may(Scope(scope), every_site)


def _permitted(group: Group | None = None) -> list[Entry]:
    """The pages, of a group or all, that the visitor may open."""
    every = (entry for entry in navigation.ENTRIES if group in (None, entry.group))
    return [entry for entry in every if _may(entry.needs, entry.every_site)]


def _capitalized(text: str) -> str:
    """A sentence with a capital at its start, whatever its other letters are."""
    return text[:1].upper() + text[1:]


def _without_controls(value: Any) -> Any:
    """Show the control characters in texts of devices. HTML of ours has none."""
    return formatting.visible(value) if type(value) is str else value


def _web_links(links: Mapping[str, str]) -> dict[str, str]:
    """The links with a web address: a setting must not put a script into the page."""
    schemes = ("http://", "https://")
    web_links = {}
    for title, url in links.items():
        if url.startswith(schemes):
            web_links[title] = url
    return web_links
