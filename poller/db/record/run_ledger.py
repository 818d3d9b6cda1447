"""The ledger: one row for every planned poll, and how late polls start.

A run is identified by (target, plan time). `write` may be repeated and may come out of order:
- no row yet: the run is inserted;
- same lease token: a later or equal attempt replaces the row but keeps its first start and wait;
- another token: the run that started later wins, so a worker that wakes up late changes nothing.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import devices, runs, targets
from poller.domain.batched import batched
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import Lateness
from poller.domain.record.run import Run

#: Outcomes of polls that were attempted.
POLLED = (Result.OK, Result.PARTIAL, Result.FAILED)
BAD = (Result.FAILED, Result.REFUSED)

#: Up to this number of targets each is looked up by its key.
_TARGET_BRANCHES = 50
_FIELDS = tuple(column.name for column in runs.columns)
_ROW = attrgetter(*(name if name != "outcome" else "outcome.value" for name in _FIELDS))


class NamedRun(NamedTuple):
    """A run with the present names of its target; empty for a removed target."""

    run: Run
    device: str
    target: str


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


def recent(
    engine: Engine,
    *,
    target_ids: Collection[int] | None = None,
    limit: int = 20,
    failed_only: bool = False,
    since_ms: int | None = None,
) -> list[NamedRun]:
    """Return the newest runs of these targets, or of all."""
    branches = _branches(target_ids, failed_only, since_ms or 0)
    if not branches:
        return []
    with sql.reading(engine) as conn:
        return [_named(row) for row in conn.execute(_newest_of(branches, limit))]


def newest_of_each(engine: Engine, target_ids: Sequence[int], limit: int) -> dict[int, list[Run]]:
    """Return the newest runs of each of these targets, newest first. Raises StoreError."""
    found: dict[int, list[Run]] = {target_id: [] for target_id in target_ids}
    with sql.reading(engine) as conn:
        for chunk in batched(target_ids, _TARGET_BRANCHES):
            parts = [_newest_of_target(target_id, limit) for target_id in chunk]
            for row in conn.execute(sa.union_all(*parts)):
                run = _run(row)
                found[run.target_id].append(run)

    for runs_of_target in found.values():
        runs_of_target.sort(key=attrgetter("plan_ms"), reverse=True)
    return found


def _newest_of_target(target_id: int, limit: int) -> sa.Select[Any]:
    of_target = runs.c.target_id == target_id
    newest = sa.select(runs).where(of_target).order_by(runs.c.plan_ms.desc()).limit(limit)
    return sa.select(newest.subquery())


def _branches(
    ids: Collection[int] | None, failed_only: bool, since_ms: int
) -> list[sa.ColumnElement[bool]]:
    """Return conditions, each of which one index serves: by target for a few, else by outcome."""
    since = runs.c.plan_ms >= since_ms
    if ids is not None and len(ids) <= _TARGET_BRANCHES:
        bad = [runs.c.outcome.in_(BAD)] if failed_only else []
        return [sa.and_(runs.c.target_id == target_id, since, *bad) for target_id in ids]

    of_targets = [] if ids is None else [in_list(runs.c.target_id, ids)]
    outcomes = BAD if failed_only else tuple(Result)
    return [sa.and_(runs.c.outcome == outcome, since, *of_targets) for outcome in outcomes]


def _newest_of(branches: Sequence[sa.ColumnElement[bool]], limit: int) -> sa.Select[Any]:
    """Select the newest rows of all branches.

    Each branch is read along one index, newest first, up to the limit: the cost does not depend on
    the size of the table.
    """
    parts = []
    for branch in branches:
        newest = sa.select(runs).where(branch).order_by(runs.c.plan_ms.desc()).limit(limit)
        parts.append(sa.select(newest.subquery()))
    found = sa.union_all(*parts).subquery()
    with_names = found.outerjoin(targets, found.c.target_id == targets.c.id).outerjoin(
        devices, targets.c.device_id == devices.c.id
    )
    return (
        sa.select(
            found,
            sa.func.coalesce(devices.c.name, "").label("device_name"),
            sa.func.coalesce(targets.c.name, "").label("target_name"),
        )
        .select_from(with_names)
        .order_by(found.c.plan_ms.desc(), found.c.target_id)
        .limit(limit)
    )


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


def _named(row: Any) -> NamedRun:
    return NamedRun(_run(row), row.device_name, row.target_name)


def _run(row: Any) -> Run:
    fields = {name: row._mapping[name] for name in _FIELDS}
    fields["outcome"] = Result(fields["outcome"])
    return Run(**fields)


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
