"""Renders views as HTML with the templates. Rendering reads neither stores nor clocks."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import jinja2

from poller.presentation import formatting
from poller.presentation.health import GLYPHS
from poller.web.access import visitor
from poller.web.assets import Assets
from poller.web.pages import overview_page, overview_tables
from poller.web.pages.collectors_page import CollectorsView
from poller.web.pages.device_page import DeviceView
from poller.web.pages.jobs_page import JobsView, JobView
from poller.web.pages.overview_page import OverviewView


class Theme(enum.StrEnum):
    SYSTEM = "system"
    LIGHT = "light"
    DARK = "dark"


@dataclass(frozen=True, slots=True)
class DisplayOptions:
    theme: Theme = Theme.SYSTEM
    refresh_s: int = 0  # for browsers without scripts; 0: never


@dataclass(frozen=True, slots=True)
class ErrorView:
    """A request that failed: what was wrong, and what to do."""

    title: str
    message: str
    hint: str = ""


@dataclass(frozen=True, slots=True)
class LoginView:
    """The login page: why the last try failed, why nobody can log in, and where to go after."""

    message: str = ""
    note: str = ""
    after: str = ""
    has_provider: bool = False
    root: str = ""  # the relative path from the address to the overview


class PageRenderer:
    """The compiled templates, with the values that are the same for all pages."""

    def __init__(self, assets: Assets, links: Mapping[str, str]) -> None:
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("poller.web"),
            autoescape=True,
            undefined=jinja2.StrictUndefined,
            finalize=_without_controls,
            trim_blocks=True,
            lstrip_blocks=True,
        )
        environment.globals.update(
            assets=assets,
            links=_web_links(links),
            tables={table.id: table for table in overview_tables.ALL},
            states={state: GLYPHS[tone] for state, tone in overview_page.STATES.items()},
            themes=list(Theme),
            visitor=visitor.current,
        )
        self._overview = environment.get_template("overview.html")
        self._device = environment.get_template("device.html")
        self._collectors = environment.get_template("collectors.html")
        self._jobs = environment.get_template("jobs.html")
        self._job = environment.get_template("job.html")
        self._error = environment.get_template("error.html")
        self._login = environment.get_template("login.html")

    def overview(self, view: OverviewView, options: DisplayOptions) -> str:
        """Render the overview, which a script keeps up to date."""
        return self._overview.render(view=view, options=options)

    def device(self, view: DeviceView, theme: Theme) -> str:
        """Render the page of one device."""
        return self._device.render(view=view, theme=theme)

    def collectors(self, view: CollectorsView, theme: Theme) -> str:
        """Render the collectors page."""
        return self._collectors.render(view=view, theme=theme)

    def jobs(self, view: JobsView, theme: Theme) -> str:
        """Render the page of all jobs."""
        return self._jobs.render(view=view, theme=theme)

    def job(self, view: JobView, theme: Theme) -> str:
        """Render the page of one job."""
        return self._job.render(view=view, theme=theme)

    def login(self, view: LoginView, theme: Theme) -> str:
        """Render the login page."""
        return self._login.render(view=view, root=view.root, theme=theme)

    def error(self, view: ErrorView, root: str, theme: Theme) -> str:
        """Render an error page. `root` is the relative path from its address to the overview."""
        return self._error.render(view=view, root=root, theme=theme)


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
