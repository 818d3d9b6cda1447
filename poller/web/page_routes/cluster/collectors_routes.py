"""The pages of collectors, the release of one, and their JSON of before `/api/v1`."""

from __future__ import annotations

import time
from typing import Annotated
from urllib.parse import urlencode

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, RedirectResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.service.operations import collector_actions
from poller.web import error_responses
from poller.web.access.form_values import SentForm
from poller.web.api.contract.needs import READ_PAGE, OperatingAll
from poller.web.api.operations import poll_wait
from poller.web.api.operations.release_api import CollectorName
from poller.web.backend_queries import BackendQueries
from poller.web.pages.cluster import collector_page, collectors_page
from poller.web.pages.cluster.collector_page import CollectorView
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

SEE_OTHER = 303
Word = Annotated[str, Query(max_length=200)]
Number = Annotated[int, Query(ge=0, le=1_000_000_000)]
Ticket = Annotated[str, Query(pattern="^[0-9a-f]{0,64}$")]


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer) -> None:
    """Add the pages of collectors and their JSON."""

    @app.get("/collectors", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_collectors(
        request: Request,
        frame: RequestedFrame,
        released: Word = "",
        number: Number = 0,
        ticket: Ticket = "",
    ) -> Response:
        """The collectors; after a release it says what was done."""
        told = collectors_page.told(released, number, ticket) if released else None
        try:
            status = await run_in_threadpool(backend.collectors)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        view = collectors_page.build_view(status, _now_ms(), told)
        return page.respond("cluster/collectors.html", frame, view=view)

    @app.get("/collectors/{name}", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_collector(
        request: Request, frame: RequestedFrame, name: CollectorName
    ) -> Response:
        """One collector: its figures, errors, slowest targets and options."""

        def read() -> CollectorView:
            status = backend.collectors()
            return collector_page.build_view(name, status, backend.slow_targets(name), _now_ms())

        try:
            view = await run_in_threadpool(read)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        return page.respond("cluster/collector.html", frame, view=view)

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


def add_forms(app: FastAPI, page: PageRenderer) -> None:
    """Add the address that the form of a release is sent to."""

    @app.post("/collectors/{name}/release", response_class=HTMLResponse)
    def release(
        request: Request, call: OperatingAll, name: CollectorName, form: SentForm
    ) -> Response:
        """End the isolation or quarantine of a collector, and requeue its dead letters."""
        try:
            done = collector_actions.release(call.services, call.actor, name)
            requeued = done.requeued
            ticket = poll_wait.ticket_of(call, requeued.ids, requeued.requested_ms)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)
        told = {"released": name, "number": len(requeued.ids), "ticket": ticket or ""}
        return RedirectResponse(f"../../collectors?{urlencode(told)}", SEE_OTHER)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
