"""`/api/v1/runs`: the outcome of every planned poll, the newest first."""

from __future__ import annotations

from typing import Annotated

from fastapi import Query, Request, Response

from poller.domain.failures.outcome import Result
from poller.domain.inventory import target_filter
from poller.presentation.record import runs_json
from poller.presentation.record.runs_json import RunItem
from poller.service.record import run_listing
from poller.service.record.run_listing import MOST_CODES, RunQuery
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Call, Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import Device, Since, Target, TargetId, Until, Where

router = resources.router("runs")
of_target_router = resources.router("targets")

Outcomes = Annotated[
    list[Result] | None, Query(alias="outcome", max_length=10, description="Repeat it for more.")
]
Codes = Annotated[
    list[str] | None,
    Query(alias="code", max_length=MOST_CODES, description="An error code; repeat it for more."),
]


@router.get("")
def list_runs(
    call: Reading,
    request: Request,
    response: Response,
    device: Device = "",
    target: Target = "",
    target_id: Annotated[int | None, Query(ge=1, le=2**63 - 1)] = None,
    where: Where = "",
    outcomes: Outcomes = None,
    codes: Codes = None,
    since: Since = "",
    until: Until = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[RunItem]:
    """List runs by plan time, the newest first.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    query = RunQuery(
        device=device,
        target=target,
        target_id=target_id,
        wanted=target_filter.parse(where),
        outcomes=outcomes or (),
        codes=codes or (),
        since_ms=record_filters.since_ms(since),
        until_ms=record_filters.until_ms(until),
    )
    found = _page(call, query, limit, cursor)
    paging.link_next(request, response, found.next)
    return found


@of_target_router.get("/{target_id}/runs", tags=["runs"])
def list_runs_of_target(
    call: Reading,
    request: Request,
    response: Response,
    target_id: TargetId,
    outcomes: Outcomes = None,
    codes: Codes = None,
    since: Since = "",
    until: Until = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[RunItem]:
    """List the runs of one target by plan time, the newest first; also of a removed target."""
    query = RunQuery(
        target_id=target_id,
        outcomes=outcomes or (),
        codes=codes or (),
        since_ms=record_filters.since_ms(since),
        until_ms=record_filters.until_ms(until),
    )
    found = _page(call, query, limit, cursor)
    paging.link_next(request, response, found.next)
    return found


def _page(call: Call, query: RunQuery, limit: int, cursor: str) -> Page[RunItem]:
    key = paging.decode(cursor, int, int)
    before = (key[0], key[1]) if key else None
    found = run_listing.page(call.services, call.actor, query, limit, before)
    items = [runs_json.item(each) for each in found.runs]
    return Page(items=items, next=paging.encode(found.next_key))
