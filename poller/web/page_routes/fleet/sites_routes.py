"""The sites: a table, and the wall, which is readable from the other end of a room."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from poller.web.api.contract.needs import READ_PAGE
from poller.web.api.snapshot import Snapshots
from poller.web.pages.fleet import sites_page, wall_page
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the pages of sites."""

    @app.get("/sites", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_sites(frame: RequestedFrame) -> HTMLResponse:
        """The sites, the worst first."""
        view = sites_page.build_view(await snapshots.get(), sites_page.ROWS)
        return page.respond("fleet/sites.html", frame, view=view)

    @app.get("/wall", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_wall(frame: RequestedFrame) -> HTMLResponse:
        """The sentence and the sites, for a screen on a wall."""
        view = wall_page.build_view(await snapshots.get())
        return page.respond("fleet/wall.html", frame, view=view)
