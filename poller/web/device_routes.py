"""The routes of one device: its page, and its rates for programs."""

from __future__ import annotations

import time
from typing import Annotated

from fastapi import FastAPI, Query, Request
from fastapi.responses import HTMLResponse, JSONResponse, Response
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.db.record.stored_rates import RatesRequest
from poller.domain.inventory import duration
from poller.presentation import rates_json
from poller.web import error_responses
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import Sources
from poller.web.pages import device_page, device_targets
from poller.web.pages.device_page import Asking, Span
from poller.web.pages.html import Page
from poller.web.pages.themes import ChosenTheme, keep

#: A day of so many takes two seconds of this process.
MOST_ITEMS = 200


def add(app: FastAPI, sources: Sources, page: Page, snapshots: Snapshots) -> None:
    @app.get("/devices/{name}", response_class=HTMLResponse)
    async def show_device(
        request: Request,
        name: str,
        theme: ChosenTheme,
        metric: str = "",
        since: Span = Span.HOUR,
        number: Annotated[int, Query(alias="page", ge=1, le=1000)] = 1,
    ) -> Response:
        asking, now_ms = Asking(metric, since, number), _now_ms()
        try:
            rated = await run_in_threadpool(sources.rates, name, asking.asked(now_ms))
            standing = await run_in_threadpool(
                sources.standing, name, [each.target.id for each in rated]
            )
        except errors.PollerError as error:
            return error_responses.answer(error, request, page)
        overview = (await snapshots.get()).overview if device_targets.any_late(standing) else None
        shown = device_page.present(name, rated, asking, now_ms, standing, overview)
        return keep(theme, HTMLResponse(page.device(shown, theme.shown)))

    @app.get("/api/devices/{name}/rates")
    async def device_rates(
        name: str,
        metric: str = "",
        since: str = "",
        limit: Annotated[int, Query(ge=1, le=MOST_ITEMS)] = MOST_ITEMS,
    ) -> JSONResponse:
        now_ms = _now_ms()
        try:
            since_ms = now_ms - duration.parse_ms(since) if since else 0
            asked = RatesRequest(
                lambda names: [each for each in names if metric in each], limit, max(0, since_ms)
            )
            rated = await run_in_threadpool(sources.rates, name, asked)
        except errors.PollerError as error:
            return JSONResponse(
                {"error": {"message": str(error)}}, status_code=error_responses.status(error)
            )
        return JSONResponse(rates_json.document(name, rated, bool(since_ms), now_ms))


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
