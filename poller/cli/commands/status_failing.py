"""`poller status --failing`: which targets fail, which wait for far too long, since when and why; the worst first.

Only what is shown is looked up in SQL, so the size of the fleet does not matter there.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from poller.cli.output import progress, render
from poller.cli.output.columns import Column, Fit
from poller.domain.batched import batched
from poller.domain.record.overview import Overview, State
from poller.domain.record.target_status import Status
from poller.presentation import formatting, health
from poller.state.board import failing_targets
from poller.state.board.failing_targets import Late

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.inventory.poll_target import PollTarget

_PAGE = 500


@dataclass(frozen=True, slots=True)
class Trouble:
    id: int
    interval_ms: int
    status: Status
    late: Late | None  # set when it waits for more than two of its intervals
    without_ms: int  # for how long there has been no good answer

    @property
    def intervals(self) -> float:
        return self.without_ms / self.interval_ms

    @property
    def since_ms(self) -> int:
        """Since when it fails or, if it does not fail, since when it should have been polled."""
        if self.late and self.status.state is not State.FAILING:
            return self.late.due_ms
        return self.status.since_ms


@dataclass(frozen=True, slots=True)
class Found:
    failing: int
    overdue: int
    total: int  # some are both
    worst: Sequence[Trouble]


def find(services: Services, view: Overview, limit: int) -> Found:
    """The worst of all targets in trouble: those without a good answer for the most of their own intervals."""
    client, keys, now_ms = services.redis, services.keys, view.as_of_ms
    queues = [load.queue for load in view.loads if load.overdue]
    late = {each.id: each for each in failing_targets.long_overdue(client, keys, queues, now_ms)}
    failing: set[int] = set()

    def troubled() -> Iterator[Trouble]:
        for each in failing_targets.failing(client, keys):
            if each.id not in failing:
                failing.add(each.id)
                yield _trouble(each.id, each.interval_ms, each.status, late.get(each.id), now_ms)
        for page in batched([key for key in late if key not in failing], _PAGE):
            statuses = services.board.statuses(page)
            for key in page:
                yield _trouble(
                    key, late[key].interval_ms, statuses.get(key, Status()), late[key], now_ms
                )

    expected = view.states.get(State.FAILING, 0) + len(late)
    seen = progress.track(troubled(), expected, "looking at what fails or waits")
    worst = heapq.nlargest(limit, seen, key=lambda each: each.intervals)
    return Found(len(failing), len(late), len(failing | late.keys()), worst)


def show(services: Services, view: Overview, limit: int, as_json: bool) -> Found:
    """Print them; those that were removed a moment ago are left out."""
    found = find(services, view, limit)
    targets = _targets(services, [each.id for each in found.worst])
    items = [_item(each, targets[each.id], view) for each in found.worst if each.id in targets]
    totals = {"failing": found.failing, "overdue": found.overdue, "total": found.total}
    render.listing("poller.status.failing/1", items, _COLUMNS, as_json, **totals)
    if not as_json:
        render.note(_totals(found, len(items)))
    return found


def _trouble(key: int, interval_ms: int, status: Status, late: Late | None, now_ms: int) -> Trouble:
    last_good_ms = status.ok_ms or status.since_ms or (late.due_ms if late else now_ms)
    return Trouble(key, interval_ms, status, late, max(0, now_ms - last_good_ms))


def _targets(services: Services, ids: Sequence[int]) -> Mapping[int, PollTarget]:
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import inventory_feed

    engine = database(services)
    found: dict[int, PollTarget] = {}
    for page in batched(ids, _PAGE):
        found.update(inventory_feed.poll_targets(engine, page))
    return found


def _item(each: Trouble, target: PollTarget, view: Overview) -> dict[str, Any]:
    status, now_ms = each.status, view.as_of_ms
    return {
        "target_id": each.id,
        "device": target.device,
        "target": target.name,
        "site": target.site,
        "collector": target.collector,
        "state": status.state.value,
        "overdue": each.late is not None,
        "since": _instant(each.since_ms),
        "for_seconds": max(0, now_ms - each.since_ms) // 1000 if each.since_ms else None,
        "last_ok": _instant(status.ok_ms),
        "intervals": round(each.intervals, 1),
        "interval_seconds": each.interval_ms / 1000,
        "overdue_seconds": (now_ms - each.late.due_ms) // 1000 if each.late else 0,
        "failures": status.failures,
        "error_code": status.code if status.state is State.FAILING else "",
        "message": _why(each, view),
    }


def _why(each: Trouble, view: Overview) -> str:
    """The device's error or, for a target that only waits, what it waits for."""
    if each.status.state is State.FAILING:
        return each.status.message
    return health.waits_for(each.late.queue if each.late else "", view)


def _totals(found: Found, shown: int) -> str:
    if not found.total:
        return "no target fails, and none is overdue by more than two of its intervals"
    whose = "its" if found.overdue == 1 else "their"
    failing = f"{formatting.counted(found.failing, 'target')} failing" if found.failing else ""
    overdue = f"{formatting.counted(found.overdue, 'target')} overdue by more than two of {whose} intervals"
    text = ", ".join(filter(None, (failing, overdue if found.overdue else "")))
    return (
        f"{text}; these are the worst, --limit {found.total} shows all"
        if found.total > shown
        else text
    )


def _instant(ms: int) -> datetime | None:
    return datetime.fromtimestamp(ms / 1000, UTC) if ms else None


def _state(item: Mapping[str, Any]) -> str:
    words = [item["state"]] if item["state"] == State.FAILING or not item["overdue"] else []
    return ", ".join([*words, *(["overdue"] if item["overdue"] else [])])


def _for(item: Mapping[str, Any]) -> str:
    return "" if item["for_seconds"] is None else formatting.age(item["for_seconds"] * 1000)


_COLUMNS = (
    Column("TARGET", lambda item: f"{item['device']}/{item['target']}", fit=Fit.WHOLE),
    Column("STATE", _state, fit=Fit.WHOLE),
    Column("FOR", _for, right=True, fit=Fit.WHOLE),
    Column(
        "INTERVALS", lambda item: f"{item['intervals']:,.1f}", right=True, fit=Fit.WHOLE, spare=1
    ),
    Column(
        "WHY",
        lambda item: ": ".join(filter(None, (item["error_code"], item["message"]))),
        fit=Fit.REST,
    ),
)
