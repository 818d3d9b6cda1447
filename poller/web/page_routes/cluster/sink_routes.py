"""The page of sinks, and the test of one with a marked sample."""

from __future__ import annotations

from fastapi import FastAPI, Request
from fastapi.responses import HTMLResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors, event_publisher
from poller.domain.record.overview import Overview
from poller.service.cluster import marked_sample, sink_listing
from poller.web import error_responses
from poller.web.access.form_values import FormValues, SentForm
from poller.web.api.cluster import shared_overview
from poller.web.api.contract import problems
from poller.web.api.contract.needs import Call, OperatingAll, ReadingAll
from poller.web.pages.cluster import sinks_page
from poller.web.pages.cluster.sinks_page import SampleNote
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import Frame, RequestedFrame


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the page, and the address that its buttons are sent to."""

    @app.get("/sinks", response_class=HTMLResponse)
    async def list_sinks(request: Request, call: ReadingAll, frame: RequestedFrame) -> Response:
        """The sinks in use and configured, those in trouble first; then the installed kinds."""
        return await _page(request, call, frame, page)

    @app.post("/sinks", response_class=HTMLResponse)
    async def test_sink(
        request: Request, call: OperatingAll, frame: RequestedFrame, form: SentForm
    ) -> Response:
        """Send one marked sample from here, and show what the store answered."""
        try:
            note, status = await run_in_threadpool(_tested, call, form)
        except errors.StoreError as error:
            return error_responses.for_page(error, request, page)
        return await _page(request, call, frame, page, note, status)


async def _page(
    request: Request,
    call: Call,
    frame: Frame,
    page: PageRenderer,
    test: SampleNote | None = None,
    status: int = 200,
) -> Response:
    overview: Overview | None = None
    redis_error = ""
    try:
        overview = await shared_overview.read(request)
    except errors.StoreUnavailable as error:
        redis_error = str(error)  # the settings are shown all the same
    found = await run_in_threadpool(sink_listing.read, call.services.settings, overview)
    now_ms = overview.as_of_ms if overview else event_publisher.now_ms()
    view = sinks_page.build_view(found, overview, now_ms, redis_error, test)
    return page.respond("cluster/sinks.html", frame, status, view=view)


def _tested(call: Call, form: FormValues) -> tuple[SampleNote, int]:
    """The answer of the store, or why there is none, and the status of the page."""
    try:
        result, note = marked_sample.send(call.services, call.actor, form.one("name"))
    except errors.ConfigError as error:
        return sinks_page.refused_note(error), problems.status(error)
    return sinks_page.sample_note(result, note), 200
