"""The page of workers and domains."""

from __future__ import annotations

from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.web import error_responses
from poller.web.api.cluster import shared_overview
from poller.web.api.contract.needs import READ_PAGE
from poller.web.backend_queries import BackendQueries
from poller.web.pages.cluster import workers_page
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

Word = Annotated[str, Query(max_length=20)]
Words = Annotated[list[str] | None, Query(max_length=workers_page.FEW)]
Number = Annotated[int, Query(ge=0, le=1_000_000)]


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the page."""

    @app.get("/workers", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_workers(
        request: Request,
        frame: RequestedFrame,
        did: Word = "",
        worker: Words = None,
        number: Number = 0,
    ) -> Response:
        """The domains with their load, and the workers; after a drain it says what was done."""
        told = workers_page.told(did, worker or (), number)
        try:
            overview = await shared_overview.read(request)
            times = await run_in_threadpool(backend.queue_times, overview.as_of_ms)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = workers_page.build_view(overview, times, told)
        return page.respond("cluster/workers.html", frame, view=view)
