"""The routes of one device: its page, and its rates as JSON."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.db.record.stored_rates import RatesRequest
from poller.domain.inventory import duration
from poller.presentation import rates_json
from poller.web import error_responses
from poller.web.api.contract.needs import READ_PAGE
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import BackendQueries
from poller.web.pages.device import device_page, device_targets
from poller.web.pages.device.device_page import DeviceData, RatesQuery, Span
from poller.web.pages.frame.html import PageRenderer
from poller.web.pages.frame.page_frame import RequestedFrame

#: Counters of one response. A day of this many counters takes about two seconds of CPU.
MAXIMUM_ITEMS = 200


def add(app: FastAPI, backend: BackendQueries, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the routes of one device."""

    @app.get("/devices/{name}", response_class=HTMLResponse, dependencies=[READ_PAGE])
    async def show_device(
        request: Request,
        name: str,
        frame: RequestedFrame,
        metric: str = "",
        since: Span = Span.HOUR,
        number: Annotated[int, Query(alias="page", ge=1, le=1000)] = 1,
    ) -> Response:
        """The page of a device."""
        query = RatesQuery(metric, since, number)
        now_ms = _now_ms()
        try:
            rates = await run_in_threadpool(backend.rates, name, query.request(now_ms))
            ids = [each.target.id for each in rates]
            state = await run_in_threadpool(backend.device_state, name, ids)
        except errors.PollerError as error:
            return error_responses.for_page(error, request, page)

        overview = None
        if device_targets.has_late_target(state):
            snapshot = await snapshots.get()
            overview = snapshot.overview

        device = DeviceData(name, rates, state, overview)
        view = device_page.build_view(device, query, now_ms)
        return page.respond("device.html", frame, view=view)

    @app.get("/api/devices/{name}/rates", dependencies=[READ_PAGE])
    async def device_rates(
        name: str,
        metric: str = "",
        since: str = "",
        limit: Annotated[int, Query(ge=1, le=MAXIMUM_ITEMS)] = MAXIMUM_ITEMS,
    ) -> JSONResponse:
        """The rates of a device as JSON. `metric` is a part of the counter's name."""

        def matching(names: Collection[str]) -> Collection[str]:
            return [each for each in names if metric in each]

        now_ms = _now_ms()
        try:
            since_ms = now_ms - duration.parse_ms(since) if since else 0
            rates_request = RatesRequest(matching, limit, max(0, since_ms))
            rates = await run_in_threadpool(backend.rates, name, rates_request)
        except errors.PollerError as error:
            body = {"error": {"message": str(error)}}
            return JSONResponse(body, status_code=error_responses.status(error))

        document = rates_json.document(name, rates, bool(since_ms), now_ms)
        return JSONResponse(document)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
