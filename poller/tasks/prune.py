"""`poller.prune`: deletes rows past their retention. A RedBeat entry starts it on any worker.

The clock of that worker decides nothing: the earlier one of the database's and the board's does.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import NamedTuple

from poller import bootstrap, errors, event_publisher
from poller.app import app
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.record import retention
from poller.db.record.retention import Ages
from poller.db.record.row_gaps import Gap
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.observability import logs
from poller.settings import Settings
from poller.state.cluster import prune_notice
from poller.state.redis_client import store_errors
from poller.tasks import store_failures

log = logs.get(__name__)

_DAY_MS = 86_400_000
#: A larger difference between the two clocks is reported.
CLOCKS_DIFFER_MS = 3_600_000


class Refusal(NamedTuple):
    """Why rows past their retention were kept. An event tells of each new `reason`."""

    reason: str
    text: str


@app.task(name="poller.prune", ignore_result=True, throws=(errors.StoreError,))
def prune() -> None:
    """Delete a bounded number of rows; the next run deletes the others."""
    services = bootstrap.services()
    with store_failures.recorded("poller.prune"):
        _prune(services)


def _prune(services: Services) -> None:
    database_ms = database_clock.now_ms(services.engine)
    board_ms = _board_ms(services)
    now_ms = min(database_ms, board_ms)

    pruned = retention.prune(services.engine, now_ms, ages(services.settings))
    removals = retention.prune_removals(services.engine, services.board.version() or 0)

    refusal = _clocks_differ(database_ms, board_ms)
    if refusal is None and pruned.kept_before:
        refusal = _unproven(pruned.kept_before)
    _notify(services, refusal, now_ms)

    counts = {**asdict(pruned), "removals": removals}
    del counts["kept_before"]
    if any(counts.values()):
        log.info("pruned", **counts)


def _board_ms(services: Services) -> int:
    with store_errors(services.redis):
        seconds, micros = services.redis.time()
    return int(seconds) * 1000 + int(micros) // 1000


def _clocks_differ(database_ms: int, board_ms: int) -> Refusal | None:
    """The refusal of a cut by the later clock, if the clocks differ much."""
    difference_ms = database_ms - board_ms
    if abs(difference_ms) < CLOCKS_DIFFER_MS:
        return None
    ahead, behind = ("the database", "Redis") if difference_ms > 0 else ("Redis", "the database")
    size = duration.rounded_text(abs(difference_ms))
    text = f"the clock of {ahead} is {size} ahead of that of {behind}, and the earlier one decides"
    return Refusal(f"clocks {ahead}", text)


def _unproven(gap: Gap) -> Refusal:
    """The refusal of a cut that would delete everything from before a gap."""
    length = duration.rounded_text(gap.until_ms - gap.since_ms)
    text = (
        f"nothing was recorded for {length}, so a clock may be wrong; "
        "they age again after a week of new rows"
    )
    return Refusal(f"gap {gap.since_ms}", text)


def _notify(services: Services, refusal: Refusal | None, now_ms: int) -> None:
    """Store the refusal for the overview; record an event when its reason is new."""
    if refusal is None:
        prune_notice.clear(services.redis, services.keys)
        return
    is_new = prune_notice.store(services.redis, services.keys, *refusal)
    if is_new:
        message = f"old rows are kept: {refusal.text}"
        event_publisher.emit(services, [Event(now_ms, Kind.PRUNE_REFUSED, message)])


def ages(settings: Settings) -> Ages:
    """The retention of each kind of row."""
    return Ages(
        runs_ms=_days_ms(settings.runs_days),
        runs_failed_ms=_days_ms(settings.runs_failed_days),
        readings_ms=_days_ms(settings.readings_days),
        events_ms=_days_ms(settings.events_days),
    )


def _days_ms(days: float) -> int:
    return round(days * _DAY_MS)
