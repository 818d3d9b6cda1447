"""The pages: a view and the reader's wishes (theme, refresh) to HTML."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass

import jinja2

from poller.presentation.health import GLYPHS
from poller.web.assets import Assets
from poller.web.pages import overview_page, overview_tables
from poller.web.pages.collectors_page import CollectorsView
from poller.web.pages.device_page import DeviceView
from poller.web.pages.overview_page import View


class Theme(enum.StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class Wishes:
    theme: Theme = Theme.SYSTEM
    refresh_s: int = 0  # only used by browsers without scripts; 0 is never


@dataclass(frozen=True, slots=True)
class Refusal:
    """Why there is no such page: what was wrong, and what to do."""

    title: str
    message: str
    hint: str = ""


class Page:
    """Compiles the templates once; rendering is pure."""

    def __init__(self, assets: Assets, links: Mapping[str, str]) -> None:
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("poller.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(
            assets=assets,
            links={
                title: url
                for title, url in links.items()
                if url.startswith(("http://", "https://"))
            },
            tables={table.id: table for table in overview_tables.ALL},
            states={state: GLYPHS[tone] for state, tone in overview_page.STATES.items()},
            themes=list(Theme),
        )
        self._overview = environment.get_template("overview.html")
        self._device = environment.get_template("device.html")
        self._collectors = environment.get_template("collectors.html")
        self._refusal = environment.get_template("refusal.html")

    def render(self, shown: View, wishes: Wishes) -> str:
        return self._overview.render(view=shown, wishes=wishes)

    def device(self, shown: DeviceView, theme: Theme) -> str:
        return self._device.render(view=shown, theme=theme)

    def collectors(self, shown: CollectorsView, theme: Theme) -> str:
        return self._collectors.render(view=shown, theme=theme)

    def refusal(self, said: Refusal, root: str, theme: Theme) -> str:
        """`root` is the way from the refused address to the overview."""
        return self._refusal.render(view=said, root=root, theme=theme)
