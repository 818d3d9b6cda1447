"""The ledger: one row for every planned poll, and how late polls start.

A run is identified by (target, plan time). `write` may be repeated and may come out of order:
- no row yet: the run is inserted;
- same lease token: a later or equal attempt replaces the row but keeps its first start and wait;
- another token: the run that started later wins, so a worker that wakes up late changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.tables import runs
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import Lateness
from poller.domain.record.run import Run

#: Outcomes of polls that were attempted.
POLLED = (Result.OK, Result.PARTIAL, Result.FAILED)

_FIELDS = tuple(column.name for column in runs.columns)
_ROW = attrgetter(*(name if name != "outcome" else "outcome.value" for name in _FIELDS))


def write(engine: Engine, rows: Sequence[Run]) -> None:
    """Store a batch by the rule of this module. Idempotent. Raises StoreError."""
    values = [_ROW(run) for run in _newest(rows)]
    with sql.writing(engine) as conn:
        bulk.insert(conn, runs, values, _UPSERT)


def close_lost(engine: Engine, rows: Sequence[Run]) -> None:
    """Insert runs whose lease ran out. A run that was written meanwhile stays as it is."""
    values = [_ROW(run) for run in _newest(rows)]
    with sql.writing(engine) as conn:
        bulk.insert(conn, runs, values, "ON CONFLICT (target_id, plan_ms) DO NOTHING")


def _newest(rows: Sequence[Run]) -> list[Run]:
    """Return one run for each key, in key order: a statement must not touch a row twice."""
    chosen: dict[tuple[int, int], Run] = {}
    for run in rows:
        key = (run.target_id, run.plan_ms)
        if key in chosen:
            chosen[key] = _merge(chosen[key], run)
        else:
            chosen[key] = run
    return [chosen[key] for key in sorted(chosen)]


def _merge(stored: Run, run: Run) -> Run:
    """Apply the rule of this module to two runs, as `_UPSERT` does in SQL."""
    if stored.token != run.token:
        return run if run.started_ms >= stored.started_ms else stored
    if run.attempt < stored.attempt:
        return stored
    if 1 <= stored.started_ms <= run.started_ms:
        return run._replace(started_ms=stored.started_ms)
    return run


def lateness(engine: Engine, since_ms: int) -> Lateness:
    """Return exact percentiles of start minus slot over the polls planned since then."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(_LATENESS, {"since": since_ms}).all()
    counts = [(int(late_ms), int(count)) for late_ms, count in rows]
    total = sum(count for _, count in counts)
    if not total:
        return Lateness()
    median = _percentile(counts, total, 0.5)
    p99 = _percentile(counts, total, 0.99)
    maximum = counts[-1][0]
    return Lateness(total, median, p99, maximum)


def _percentile(counts: Sequence[tuple[int, int]], total: int, share: float) -> float:
    """Return the smallest value that at least `share` of all values do not exceed."""
    cumulative = 0
    for value, count in counts:
        cumulative += count
        if cumulative >= share * total:
            return value
    return counts[-1][0]


def overlaps(engine: Engine, since_ms: int) -> int:
    """Count runs that started before an earlier run of the same target ended. Must be 0."""
    with sql.single_read(engine) as conn:
        return int(conn.execute(_OVERLAPS, {"since": since_ms}).scalar_one())


def counts(engine: Engine, since_ms: int) -> dict[Result, int]:
    """Return the number of runs by outcome."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(_COUNTS, {"since": since_ms}).all()
    return {Result(outcome): count for outcome, count in rows}


_UPSERT = """ON CONFLICT (target_id, plan_ms) DO UPDATE SET
    attempt = excluded.attempt, outcome = excluded.outcome, error_code = excluded.error_code,
    message = excluded.message, finished_ms = excluded.finished_ms, samples = excluded.samples,
    runner = excluded.runner, token = excluded.token,
    collect_ms = excluded.collect_ms, write_ms = excluded.write_ms,
    started_ms = CASE WHEN runs.token = excluded.token
                           AND runs.started_ms BETWEEN 1 AND excluded.started_ms
                      THEN runs.started_ms ELSE excluded.started_ms END,
    queue_ms = CASE WHEN runs.token = excluded.token
                         AND runs.started_ms BETWEEN 1 AND excluded.started_ms
                    THEN runs.queue_ms ELSE excluded.queue_ms END
    WHERE CASE WHEN runs.token = excluded.token THEN excluded.attempt >= runs.attempt
               ELSE excluded.started_ms >= runs.started_ms END"""

_since = runs.c.plan_ms >= sa.bindparam("since")
_polled = sa.and_(runs.c.outcome.in_(POLLED), runs.c.started_ms > 0)

_late = (runs.c.started_ms - runs.c.plan_ms).label("late")
_LATENESS = sa.select(_late, sa.func.count()).where(_since, _polled).group_by(_late).order_by(_late)

_earlier = sa.select(
    runs.c.started_ms,
    sa.func.max(runs.c.finished_ms)
    .over(
        partition_by=runs.c.target_id,
        order_by=(runs.c.started_ms, runs.c.plan_ms),
        rows=(None, -1),
    )
    .label("busy_until_ms"),
).where(_since, _polled)
_ordered = _earlier.subquery()
_OVERLAPS = (
    sa.select(sa.func.count())
    .select_from(_ordered)
    .where(_ordered.c.started_ms < _ordered.c.busy_until_ms)
)

_COUNTS = (
    sa.select(runs.c.outcome, sa.func.count())
    .where(runs.c.outcome.in_(list(Result)), _since)
    .group_by(runs.c.outcome)
)
