"""Figures of a month: the traffic of interfaces, as JSON or CSV."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any, Literal

from fastapi import Query, Request, Response
from fastapi.responses import StreamingResponse

from poller.db.inventory.filter_conditions import SelectedTarget
from poller.domain.inventory import target_filter
from poller.presentation.history import traffic_json
from poller.presentation.history.traffic_json import TrafficItem
from poller.service.history import traffic_report
from poller.service.history.traffic_report import Month
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Call, Reading
from poller.web.api.contract.paging import Cursor, Page
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import Device, Where

router = resources.router("reports")

#: Targets of one page: a month of a large switch takes a tenth of a second of CPU.
MOST_TARGETS = 50

_CSV: dict[int | str, dict[str, Any]] = {
    200: {"content": {"text/csv": {"schema": {"type": "string"}}}}
}


class TrafficPage(Page[TrafficItem]):
    """A page of the report: all interfaces of some targets."""

    month: str


@router.get("/traffic", response_model=TrafficPage, responses=_CSV)
def report_traffic(
    call: Reading,
    request: Request,
    response: Response,
    month: Annotated[str, Query(max_length=20, description="A month in UTC: 2026-10.")],
    device: Device = "",
    where: Where = "",
    limit: Annotated[int, Query(ge=1, le=MOST_TARGETS, description="Targets of one page.")] = 20,
    cursor: Cursor = "",
    format: Annotated[Literal["json", "csv"], Query(description="The form of the answer.")] = (
        "json"
    ),
) -> Any:
    """Report the traffic of every interface in a month, a row for each direction.

    A page can have no items: follow `next` until it is null.
    """
    now_ms = record_filters.now_ms()
    asked = traffic_report.month(month, now_ms)
    wanted = target_filter.parse(where)
    key = paging.decode(cursor, int)
    selected = traffic_report.chosen(call.services, call.actor, wanted, device)
    in_order = sorted(each for each in selected if key is None or each.id > key[0])
    page = in_order[:limit]
    following = paging.encode([page[-1].id] if len(in_order) > limit else None)
    rows = list(_rows(call, page, asked, now_ms))
    if format == "csv":
        lines = traffic_json.csv_lines(rows)
        csv = StreamingResponse(lines, media_type="text/csv; charset=utf-8")
        paging.link_next(request, csv, following)
        return csv
    paging.link_next(request, response, following)
    return TrafficPage(items=rows, next=following, month=asked.name)


def _rows(
    call: Call, page: Sequence[SelectedTarget], asked: Month, now_ms: int
) -> Iterator[TrafficItem]:
    for each in traffic_report.traffic(call.services, page, asked, now_ms):
        for interface in each.interfaces:
            resolution = each.plan.resolution.value
            yield from traffic_json.items(
                each.target.device, each.target.name, resolution, interface
            )
