"""The page of settings: read only, as the process that serves the page has them."""

from __future__ import annotations

import os
from typing import Annotated, Literal

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response

from poller import errors, event_publisher
from poller.settings import setting_table
from poller.web import error_responses
from poller.web.api.contract.needs import Administering
from poller.web.pages.cluster import settings_page
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page."""

    @app.get("/settings", response_class=HTMLResponse)
    def list_settings(
        request: Request,
        call: Administering,
        frame: RequestedFrame,
        q: Annotated[str, Query(max_length=200)] = "",
        show: Literal["", "all"] = "",
    ) -> Response:
        """The settings that were set, or all of them, or what a search finds."""
        try:
            rows = setting_table.rows(call.services.settings, os.environ)
        except errors.PollerError as error:  # poller.toml was broken after the start
            return error_responses.for_page(error, request, page)
        now_ms = event_publisher.now_ms()
        view = settings_page.build_view(rows, q.strip(), show == "all", now_ms)
        return page.respond("cluster/settings.html", frame, view=view)
