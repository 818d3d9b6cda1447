"""Series of a device or a target over a range, as JSON or CSV."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse
from pydantic import Field

from poller import errors
from poller.db.inventory.targets import Target as StoredTarget
from poller.domain.inventory import duration
from poller.domain.series.series_plan import Range
from poller.presentation.history import series_csv, series_json
from poller.presentation.history.series_json import SeriesItem
from poller.service import site_limit
from poller.service.history import series_listing
from poller.service.history.series_listing import MOST_LINES, SeriesQuestion
from poller.service.record import reading_listing
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Call, Reading
from poller.web.api.contract.paging import Cursor, Page
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import (
    DeviceName,
    Metric,
    Since,
    Target,
    TargetId,
    Until,
)

router = resources.router("devices")
of_target_router = resources.router("targets")

_DAY_MS = 86_400_000
_LONGEST_STEP = 20

Step = Annotated[
    str,
    Query(max_length=_LONGEST_STEP, description="Time between points, such as 5m; empty: chosen."),
]
Label = Annotated[
    list[str] | None,
    Query(max_length=10, description="Only series with this label: `ifName=eth0`. Repeatable."),
]
Rate = Annotated[bool, Query(description="Only counters.")]
Top = Annotated[
    int, Query(ge=0, le=MOST_LINES, description="Only so many series, by their means; 0: all.")
]
Lines = Annotated[int, Query(ge=1, le=MOST_LINES, description="Most series of one page.")]
Form = Annotated[Literal["json", "csv"], Query(description="The form of the answer.")]
_CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}}
}


class SeriesPage(Page[SeriesItem]):
    """A page of series, and how their range was read. A page has at most 300,000 points."""

    resolution: Literal["raw", "5m", "1h"]
    why: str = Field(description="Which form of history was read, and why.")
    step_seconds: float | None = Field(description="Null: every poll is a point.")
    since: str = Field(json_schema_extra={"format": "date-time"})
    until: str = Field(json_schema_extra={"format": "date-time"})


@router.get("/{name}/series", tags=["readings"], response_model=SeriesPage, responses=_CSV)
def list_series_of_device(
    call: Reading,
    request: Request,
    response: Response,
    name: DeviceName,
    target: Target = "",
    metric: Metric = "",
    label: Label = None,
    since: Since = "",
    until: Until = "",
    step: Step = "",
    rate: Rate = False,
    top: Top = 0,
    limit: Lines = series_listing.DEFAULT_LINES,
    cursor: Cursor = "",
    format: Form = "json",
) -> Any:
    """List the series of a device over a range, the last day by default."""
    chosen = reading_listing.chosen_targets(call.services, call.actor, name, target)
    question = _question(metric, label, _range(since, until, step), rate, top, limit, cursor)
    return _answer(call, request, response, chosen, question, format)


@of_target_router.get(
    "/{target_id}/series", tags=["readings"], response_model=SeriesPage, responses=_CSV
)
def list_series_of_target(
    call: Reading,
    request: Request,
    response: Response,
    target_id: TargetId,
    metric: Metric = "",
    label: Label = None,
    since: Since = "",
    until: Until = "",
    step: Step = "",
    rate: Rate = False,
    top: Top = 0,
    limit: Lines = series_listing.DEFAULT_LINES,
    cursor: Cursor = "",
    format: Form = "json",
) -> Any:
    """List the series of a target over a range, the last day by default."""
    chosen = [site_limit.visible_target(call.services, call.actor, target_id)]
    question = _question(metric, label, _range(since, until, step), rate, top, limit, cursor)
    return _answer(call, request, response, chosen, question, format)


def _range(since: str, until: str, step: str) -> Range:
    now_ms = record_filters.now_ms()
    end_ms = record_filters.until_ms(until)
    end_ms = now_ms if end_ms is None else end_ms
    start_ms = record_filters.since_ms(since) if since else end_ms - _DAY_MS
    return Range(start_ms, end_ms, _step_ms(step))


def _step_ms(text: str) -> int | None:
    if not text:
        return None
    try:
        return duration.parse_ms(text)
    except errors.InvalidInput as error:
        raise errors.InvalidInput(f"step: {error.message}", hint=error.hint) from None


def _question(
    metric: str,
    label: Sequence[str] | None,
    asked: Range,
    rate: bool,
    top: int,
    limit: int,
    cursor: str,
) -> SeriesQuestion:
    key = paging.decode(cursor, int)
    offset = min(max(0, key[0]), 10**9) if key else 0
    return SeriesQuestion(asked, metric, _labels(label or ()), rate, top, limit, offset)


def _labels(words: Sequence[str]) -> dict[str, str]:
    found = {}
    for word in words:
        key, equals, value = word.partition("=")
        if not equals or not key:
            raise errors.InvalidInput(f'label: "{word}" has no value', hint="label=ifName=eth0")
        found[key] = value
    return found


def _answer(
    call: Call,
    request: Request,
    response: Response,
    chosen: Sequence[StoredTarget],
    question: SeriesQuestion,
    form: str,
) -> Any:
    answer = series_listing.series(call.services, chosen, question, record_filters.now_ms())
    items = (
        series_json.item(each.target.device, each.target.name, each.line) for each in answer.lines
    )
    end = question.offset + len(answer.lines)
    following = paging.encode([end] if answer.more else None)
    if form == "csv":
        headers = {"X-Poller-History": answer.plan.sentence()}
        lines = series_csv.lines(items)
        csv = StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)
        paging.link_next(request, csv, following)
        return csv
    paging.link_next(request, response, following)
    return SeriesPage(items=list(items), next=following, **series_json.head(answer.plan))
