"""The routes of the collectors: their page, and the same for programs."""

from __future__ import annotations

import time

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.web import error_responses
from poller.web.backend_queries import Sources
from poller.web.pages import collectors_page
from poller.web.pages.html import Page
from poller.web.pages.themes import ChosenTheme, keep


def add(app: FastAPI, sources: Sources, page: Page) -> None:
    @app.get("/collectors", response_class=HTMLResponse)
    async def show_collectors(request: Request, theme: ChosenTheme) -> Response:
        try:
            found = await run_in_threadpool(sources.collectors)
        except errors.PollerError as error:
            return error_responses.answer(error, request, page)
        shown = collectors_page.present(found, _now_ms())
        return keep(theme, HTMLResponse(page.collectors(shown, theme.shown)))

    @app.get("/api/collectors")
    async def collectors_document() -> JSONResponse:
        try:
            found = await run_in_threadpool(sources.collectors)
        except errors.PollerError as error:
            return JSONResponse({"error": {"message": str(error)}}, status_code=503)
        return JSONResponse(collectors_page.document(found, _now_ms()))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
