"""The overview page."""

from __future__ import annotations

from fastapi import FastAPI
from fastapi.responses import HTMLResponse

from poller.web.api.contract.needs import READ_PAGE
from poller.web.api.snapshot import Snapshots
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the overview page."""

    @app.get("/", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_overview(frame: RequestedFrame) -> HTMLResponse:
        """The overview page."""
        snapshot = await snapshots.get()
        return page.respond("fleet/overview.html", frame, view=snapshot.view)
