"""The job `prune`: deletes rows past their retention, a bounded number in each run.

The clock of the worker decides nothing: the earlier one of the database's and the board's does.
"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any, NamedTuple

from poller.db import database_clock
from poller.db.access import access_retention
from poller.db.alerts import alert_retention
from poller.db.history import plain_retention
from poller.db.jobs import job_retention
from poller.db.record import retention
from poller.db.record.retention import Ages, Leftover, Pruned
from poller.db.record.row_gaps import Gap
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.jobs import api
from poller.observability import logs
from poller.state.cluster import prune_notice
from poller.state.redis_client import store_errors

log = logs.get(__name__)

_DAY_MS = 86_400_000
#: A larger difference between the two clocks is reported.
CLOCKS_DIFFER_MS = 3_600_000
#: Duration of a run at most; the next one goes on.
SECONDS = 240.0


class Refusal(NamedTuple):
    """Why rows past their retention were kept. An event tells of each new `reason`."""

    reason: str
    text: str


@api.job(every_s=300, name="prune", run_timeout_s=600, max_attempts=2, retry_delays_s=(60.0,))
def prune(context: api.Context) -> api.Result:
    """Delete rows that are older than their retention."""
    services = context.services
    database_ms = database_clock.now_ms(services.engine)
    board_ms = _board_ms(services)
    now_ms = min(database_ms, board_ms)

    deleted, pruned = _delete(context, now_ms)

    refusal = _clocks_differ(database_ms, board_ms) or _kept(pruned)
    _notify(context, refusal, now_ms)
    if any(deleted.values()):
        log.info("pruned", **deleted)

    details: dict[str, Any] = dict(deleted)
    if refusal is not None:
        details["kept"] = refusal.text
    return api.Result(sum(deleted.values()), details)


def _delete(context: api.Context, now_ms: int) -> tuple[dict[str, int], Pruned]:
    """Delete rows of every kind. Returns the number of each, and what was kept."""
    services = context.services
    engine = services.engine
    settings = services.settings
    until_mono = time.monotonic() + SECONDS

    def rest(seconds: float) -> None:
        context.heartbeat()
        time.sleep(seconds)

    pruned = retention.prune(engine, now_ms, ages(settings), rest, until_mono)
    context.heartbeat()
    applied = services.board.version() or 0
    removals = retention.prune_removals(engine, applied, rest, until_mono)
    context.heartbeat()
    jobs_before_ms = pruned.proven_ms - _days_ms(settings.job_runs_days)
    of_jobs = job_retention.prune(engine, jobs_before_ms, rest, until_mono)
    context.heartbeat()
    audit_before_ms = pruned.proven_ms - _days_ms(settings.audit_days)
    of_access = access_retention.prune(engine, audit_before_ms, now_ms, rest, until_mono)

    context.heartbeat()
    alerts_before_ms = pruned.proven_ms - _days_ms(settings.alerts_days)
    of_alerts = alert_retention.prune(engine, alerts_before_ms, rest, until_mono)

    context.heartbeat()
    rows_before_ms = pruned.proven_ms - _days_ms(settings.sql_history_days)
    sql_rows = plain_retention.prune(engine, rows_before_ms)

    deleted = {
        **pruned.counts,
        "sql_rows": sql_rows,
        "removals": removals,
        **asdict(of_jobs),
        **asdict(of_access),
        **asdict(of_alerts),
    }
    return deleted, pruned


def _board_ms(services: api.Services) -> int:
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


def _kept(pruned: Pruned) -> Refusal | None:
    """The refusal of a cut that would delete everything, if there is one."""
    if pruned.kept_before:
        return _unproven(pruned.kept_before)
    if pruned.leftovers:
        return _last_day(pruned.leftovers)
    return None


def _unproven(gap: Gap) -> Refusal:
    """The refusal of a cut that would delete everything from before a gap."""
    length = duration.rounded_text(gap.until_ms - gap.since_ms)
    text = (
        f"nothing was recorded for {length}, so a clock may be wrong; "
        "they age again after a week of new rows"
    )
    return Refusal(f"gap {gap.since_ms}", text)


def _last_day(leftovers: tuple[Leftover, ...]) -> Refusal:
    """The refusal of a cut that would empty a table."""
    tables = " and ".join(leftover.table for leftover in leftovers)
    text = (
        f"all {tables} are past their retention; "
        "the newest day of them stays for a week, unless new ones come"
    )
    return Refusal(f"all {tables}", text)


def _notify(context: api.Context, refusal: Refusal | None, now_ms: int) -> None:
    """Store the refusal for the overview; record an event when its reason is new."""
    services = context.services
    if refusal is None:
        prune_notice.clear(services.redis, services.keys)
        return
    is_new = prune_notice.store(services.redis, services.keys, *refusal)
    if is_new:
        message = f"old rows are kept: {refusal.text}"
        context.tell(Event(now_ms, Kind.PRUNE_REFUSED, message))


def ages(settings: Any) -> Ages:
    """The retention of each kind of row."""
    return Ages(
        runs_ms=_days_ms(settings.runs_days),
        runs_failed_ms=_days_ms(settings.runs_failed_days),
        readings_ms=_days_ms(settings.readings_days),
        events_ms=_days_ms(settings.events_days),
        target_days_ms=_days_ms(settings.target_days_days),
        history_5m_ms=_days_ms(settings.history_5m_days),
        history_1h_ms=_days_ms(settings.history_1h_days),
    )


def _days_ms(days: float) -> int:
    return round(days * _DAY_MS)
