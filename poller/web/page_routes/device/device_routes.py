"""The rates of a device as JSON, as they were before `/api/v1`."""

from __future__ import annotations

import time
from collections.abc import Collection
from typing import Annotated

from fastapi import FastAPI, Query
from fastapi.responses import JSONResponse
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.db.record.stored_rates import RatesRequest
from poller.domain.inventory import duration
from poller.presentation import rates_json
from poller.web import error_responses
from poller.web.api.contract.needs import READ_PAGE
from poller.web.backend_queries import BackendQueries

#: Counters of one response. A day of this many counters takes about two seconds of CPU.
MAXIMUM_ITEMS = 200


def add(app: FastAPI, backend: BackendQueries) -> None:
    """Add the route."""

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
