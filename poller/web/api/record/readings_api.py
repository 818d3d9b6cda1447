"""Readings and rates of a device, and the readings of a target, over HTTP."""

from __future__ import annotations

from collections.abc import Collection
from typing import Annotated

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from poller.db.record.stored_rates import RatesRequest
from poller.domain.metrics.counters import Verdict
from poller.presentation import rates_json
from poller.presentation.record import readings_json
from poller.presentation.record.readings_json import ReadingItem
from poller.service import site_limit
from poller.service.record import reading_listing
from poller.service.record.reading_listing import ReadingKey, ReadingPage
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Reading
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import DeviceName, Metric, Since, Target, TargetId

router = resources.router("devices")
of_target_router = resources.router("targets")

#: Counters of one page. A day of this many counters takes about two seconds of CPU.
MOST_RATES = 200


class RateBody(BaseModel):
    """The rate of a counter between two polls."""

    per_second: float | None = Field(description="Null if no rate can be told.")
    verdict: Verdict
    reason: str
    seconds: float = Field(description="Between the two polls.")
    at: str = Field(json_schema_extra={"format": "date-time"})
    claimed_per_second: float | None = Field(
        None, description="What an implausible counter claims; else left out."
    )


class RateItem(RateBody):
    """One counter and its newest rate. With `since` also all rates, their mean and maximum."""

    target: str
    metric: str
    labels: dict[str, str]
    age_seconds: float
    mean_per_second: float | None = None
    max_per_second: float | None = None
    rates: list[RateBody] | None = None


class RatePage(Page[RateItem]):
    """A page of counters with their rates."""

    total: int = Field(description="The counters that match, of all pages.")


@router.get("/{name}/readings", tags=["readings"])
def list_readings_of_device(
    call: Reading,
    request: Request,
    response: Response,
    name: DeviceName,
    target: Target = "",
    metric: Metric = "",
    since: Since = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[ReadingItem]:
    """List the last values of a device's targets; with `since` only of targets read since then."""
    after = _key(cursor)
    since_ms = record_filters.since_ms(since)
    chosen = reading_listing.chosen_targets(call.services, call.actor, name, target)
    found = reading_listing.page_of_latest(call.services, chosen, metric, since_ms, limit, after)
    return _page(request, response, found)


@of_target_router.get("/{target_id}/readings", tags=["readings"])
def list_readings_of_target(
    call: Reading,
    request: Request,
    response: Response,
    target_id: TargetId,
    metric: Metric = "",
    since: Since = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[ReadingItem]:
    """List the last values of a target; with `since` those of all polls since then, oldest first.

    A page can have fewer items than its limit, also none: follow `next` until it is null.
    """
    after = _key(cursor)
    since_ms = record_filters.since_ms(since)
    target = site_limit.visible_target(call.services, call.actor, target_id)
    if since:
        found = reading_listing.page_of_history(
            call.services, target, metric, since_ms, limit, after
        )
    else:
        found = reading_listing.page_of_latest(call.services, [target], metric, 0, limit, after)
    return _page(request, response, found)


@router.get("/{name}/rates", tags=["readings"], response_model_exclude_unset=True)
def list_rates_of_device(
    call: Reading,
    request: Request,
    response: Response,
    name: DeviceName,
    target: Target = "",
    metric: Metric = "",
    since: Since = "",
    limit: Annotated[int, Query(ge=1, le=MOST_RATES)] = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> RatePage:
    """List the counters of a device with their newest rates, each with its verdict."""
    key = paging.decode(cursor, int)
    offset = min(max(0, key[0]), 10**9) if key else 0

    def matching(names: Collection[str]) -> Collection[str]:
        return [each for each in names if metric in each]

    since_ms = record_filters.since_ms(since)
    chosen = reading_listing.chosen_targets(call.services, call.actor, name, target)
    wanted = RatesRequest(matching, limit, since_ms, offset)
    rates = reading_listing.rates(call.services, chosen, wanted)
    found = rates_json.document(name, rates, bool(since_ms), record_filters.now_ms())
    end = offset + len(found["items"])
    following = paging.encode([end] if found["items"] and end < found["total"] else None)
    paging.link_next(request, response, following)
    items = [RateItem(**item) for item in found["items"]]
    return RatePage(items=items, next=following, total=found["total"])


def _key(cursor: str) -> ReadingKey | None:
    key = paging.decode(cursor, int, int, int)
    if key is None:
        return None
    target_id, at_ms, position = (min(max(0, part), 2**62) for part in key)
    return target_id, at_ms, position


def _page(request: Request, response: Response, found: ReadingPage) -> Page[ReadingItem]:
    following = paging.encode(found.next_key)
    paging.link_next(request, response, following)
    now_ms = record_filters.now_ms()
    items = [
        readings_json.item(each.target, each.at_ms, each.series, each.value, now_ms)
        for each in found.values
    ]
    return Page(items=items, next=following)
