"""`poller status --failing`: targets that fail or are long overdue, the worst first.

Only the printed targets are read from SQL, so the size of the fleet does not matter there.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import attrgetter
from typing import TYPE_CHECKING, Any

from poller.cli.arguments.filter_options import FilterOptions
from poller.cli.output import progress, render
from poller.cli.output.columns import (
    Column,
    Fit,
    Item,
    age_column,
    error_column,
    instant,
    target_column,
)
from poller.domain.batched import batched
from poller.domain.failures import error_codes
from poller.domain.record.overview import Overview, State
from poller.domain.record.target_status import Status
from poller.presentation import formatting, running_workers
from poller.state.board import failing_targets
from poller.state.board.failing_targets import Late

if TYPE_CHECKING:
    from poller.bootstrap import Services
    from poller.domain.inventory.poll_target import PollTarget

_PAGE = 500


@dataclass(frozen=True, slots=True)
class TroubledTarget:
    """A target that fails, or is overdue by more than two of its intervals."""

    id: int
    interval_ms: int
    status: Status
    late: Late | None  # set if the target is overdue
    without_ms: int  # time since its last good poll

    @property
    def intervals(self) -> float:
        return self.without_ms / self.interval_ms

    @property
    def since_ms(self) -> int:
        """The start of its failures; without failures the instant it was due."""
        if self.late and self.status.state is not State.FAILING:
            return self.late.due_ms
        return self.status.since_ms


@dataclass(frozen=True, slots=True)
class Troubles:
    """The counts of troubled targets, and the worst of them."""

    failing: int
    overdue: int
    total: int  # less than the sum if a target is both
    worst: Sequence[TroubledTarget]


def find(
    services: Services, view: Overview, limit: int, ids: Collection[int] | None = None
) -> Troubles:
    """The worst targets: those without a good poll for the most of their own intervals.

    `ids` are those that a filter selects; None is all.
    """
    client = services.redis
    keys = services.keys
    now_ms = view.as_of_ms
    queues = [load.queue for load in view.loads if load.overdue]
    overdue = failing_targets.long_overdue(client, keys, queues, now_ms)
    late = {each.id: each for each in overdue if ids is None or each.id in ids}
    failing: set[int] = set()

    def troubled() -> Iterator[TroubledTarget]:
        for each in failing_targets.failing(client, keys):
            if each.id not in failing and (ids is None or each.id in ids):
                failing.add(each.id)
                yield _troubled(each.id, each.interval_ms, each.status, late.get(each.id), now_ms)

        only_late = [key for key in late if key not in failing]
        for page in batched(only_late, _PAGE):
            statuses = services.board.statuses(page)
            for key in page:
                status = statuses.get(key, Status())
                yield _troubled(key, late[key].interval_ms, status, late[key], now_ms)

    expected = view.states.get(State.FAILING, 0) + len(late)
    scan = progress.track(troubled(), expected, "reading failing and overdue targets")
    worst = heapq.nlargest(limit, scan, key=attrgetter("intervals"))

    return Troubles(len(failing), len(late), len(failing | late.keys()), worst)


def show(
    services: Services, view: Overview, selection: FilterOptions, limit: int, as_json: bool
) -> None:
    """Print the worst targets. A target that was removed meanwhile is left out."""
    found = find(services, view, limit, selection.target_ids(services))
    targets = _targets(services, [each.id for each in found.worst])

    items = []
    for each in found.worst:
        if each.id in targets:
            items.append(_item(each, targets[each.id], view))

    totals = {"failing": found.failing, "overdue": found.overdue, "total": found.total}
    render.listing("poller.status.failing/1", items, _COLUMNS, as_json, **totals)
    if not as_json:
        render.note(_totals(found, len(items)))


def _troubled(
    key: int, interval_ms: int, status: Status, late: Late | None, now_ms: int
) -> TroubledTarget:
    """A troubled target with the time since its last good poll."""
    never_polled_ms = late.due_ms if late else now_ms
    last_good_ms = status.ok_ms or status.since_ms or never_polled_ms
    without_ms = max(0, now_ms - last_good_ms)
    return TroubledTarget(key, interval_ms, status, late, without_ms)


def _targets(services: Services, ids: Sequence[int]) -> Mapping[int, PollTarget]:
    from poller.cli.inventory.inventory_database import database
    from poller.db.inventory import inventory_feed

    engine = database(services)

    found: dict[int, PollTarget] = {}
    for page in batched(ids, _PAGE):
        found.update(inventory_feed.poll_targets(engine, page))

    return found


def _item(each: TroubledTarget, target: PollTarget, view: Overview) -> dict[str, Any]:
    """The JSON fields of a troubled target."""
    status = each.status
    now_ms = view.as_of_ms
    is_failing = status.state is State.FAILING

    return {
        "target_id": each.id,
        "device": target.device,
        "target": target.name,
        "site": target.site,
        "collector": target.collector,
        "state": status.state.value,
        "overdue": each.late is not None,
        "since": instant(each.since_ms),
        "for_seconds": max(0, now_ms - each.since_ms) // 1000 if each.since_ms else None,
        "last_ok": instant(status.ok_ms),
        "intervals": round(each.intervals, 1),
        "interval_seconds": each.interval_ms / 1000,
        "overdue_seconds": (now_ms - each.late.due_ms) // 1000 if each.late else 0,
        "failures": status.failures,
        "error_code": status.code if is_failing else "",
        "category": error_codes.category_of(status.code) if is_failing else "",
        "message": _why(each, view),
    }


def _why(each: TroubledTarget, view: Overview) -> str:
    """The device's error; for a target that is only overdue, what it waits for."""
    if each.status.state is State.FAILING:
        return each.status.message
    queue = each.late.queue if each.late else ""
    return running_workers.waiting_reason(queue, view)


def _totals(found: Troubles, shown: int) -> str:
    """`3 targets failing, 1 target overdue by more than two of its intervals`"""
    if not found.total:
        return "no target fails, and none is overdue by more than two of its intervals"

    parts = []
    if found.failing:
        parts.append(f"{formatting.counted(found.failing, 'target')} failing")

    if found.overdue:
        whose = "its" if found.overdue == 1 else "their"
        overdue = formatting.counted(found.overdue, "target")
        parts.append(f"{overdue} overdue by more than two of {whose} intervals")

    text = ", ".join(parts)
    if found.total > shown:
        text += f"; these are the worst, --limit {found.total} shows all"

    return text


def _state(item: Item) -> str:
    if not item["overdue"]:
        return str(item["state"])
    if item["state"] == State.FAILING:
        return f"{item['state']}, overdue"
    return "overdue"


def _intervals(item: Item) -> str:
    return f"{item['intervals']:,.1f}"


_COLUMNS = (
    target_column(),
    Column("STATE", _state, fit=Fit.WHOLE),
    age_column("FOR", "for_seconds"),
    Column("INTERVALS", _intervals, right=True, fit=Fit.WHOLE, spare=1),
    error_column("WHY", wraps=True),
)
