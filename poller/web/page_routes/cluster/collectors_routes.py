"""The collectors page, and its JSON of before `/api/v1`."""

from __future__ import annotations

import time

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.web import error_responses
from poller.web.api.contract.needs import READ_PAGE
from poller.web.backend_queries import BackendQueries
from poller.web.pages.cluster import collectors_page
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the collectors page and its JSON."""

    @app.get("/collectors", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_collectors(request: Request, frame: RequestedFrame) -> Response:
        """The collectors page."""
        try:
            status = await run_in_threadpool(backend.collectors)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = collectors_page.build_view(status, _now_ms())
        return page.respond("cluster/collectors.html", frame, view=view)

    @app.get("/api/collectors", dependencies=[READ_PAGE])
    async def collectors_document() -> JSONResponse:
        """The collectors as JSON."""
        try:
            status = await run_in_threadpool(backend.collectors)
        except errors.PollerError as error:
            body = {"error": {"message": str(error)}}
            return JSONResponse(body, status_code=503)

        document = collectors_page.document(status, _now_ms())
        return JSONResponse(document)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
