"""The ledger: what became of every planned poll, and what it says of our punctuality.

A run is known by (target, plan time). `write` may be repeated and may come out of order; the rule is:
- no row yet: insert it;
- same lease token: a later or equal attempt replaces the row, which keeps the first attempt's start and wait;
- another token: the one that started later wins, so a worker that wakes up late changes nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from operator import attrgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.tables import devices, runs, targets
from poller.domain.failures.outcome import Result
from poller.domain.record.overview import Lateness
from poller.domain.record.run import Run

#: Outcomes of a poll that was really attempted.
POLLED = (Result.OK, Result.PARTIAL, Result.FAILED)
BAD = (Result.FAILED, Result.REFUSED)

_FIELDS = tuple(column.name for column in runs.columns)
_ROW = attrgetter(*(name if name != "outcome" else "outcome.value" for name in _FIELDS))


class NamedRun(NamedTuple):
    """A run with the names of today; empty when the target has been removed since."""

    run: Run
    device: str
    target: str


def write(engine: Engine, rows: Sequence[Run]) -> None:
    """Store a batch by the rule above. Idempotent. Raises StoreError."""
    values = [_ROW(run) for run in _newest(rows)]
    with sql.writing(engine) as conn:
        bulk.insert(conn, runs, values, _UPSERT)


def close_lost(engine: Engine, rows: Sequence[Run]) -> None:
    """Close runs nobody will finish. A run that was written meanwhile is left as it is: it did happen."""
    values = [_ROW(run) for run in _newest(rows)]
    with sql.writing(engine) as conn:
        bulk.insert(conn, runs, values, "ON CONFLICT (target_id, plan_ms) DO NOTHING")


def _newest(rows: Sequence[Run]) -> list[Run]:
    """One row per key (a statement must not touch a row twice), in key order: what the rule makes of several."""
    chosen: dict[tuple[int, int], Run] = {}
    for run in rows:
        key = run.target_id, run.plan_ms
        chosen[key] = _replaced(chosen[key], run) if key in chosen else run
    return [chosen[key] for key in sorted(chosen)]


def _replaced(there: Run, run: Run) -> Run:
    """The rule above, as `_UPSERT` has it."""
    if there.token != run.token:
        return run if run.started_ms >= there.started_ms else there
    if run.attempt < there.attempt:
        return there
    return (
        run._replace(started_ms=there.started_ms)
        if 1 <= there.started_ms <= run.started_ms
        else run
    )


def recent(
    engine: Engine,
    *,
    target_id: int | None = None,
    device: str | None = None,
    limit: int = 20,
    failed_only: bool = False,
    since_ms: int | None = None,
) -> list[NamedRun]:
    """The newest runs first, of one target, one device or everything."""
    outcomes = BAD if failed_only else tuple(Result)
    since = runs.c.plan_ms >= (since_ms or 0)
    with sql.reading(engine) as conn:
        ids = (
            [target_id]
            if target_id is not None
            else _ids(conn, device)
            if device is not None
            else None
        )
        if ids is None:
            branches = [sa.and_(runs.c.outcome == outcome, since) for outcome in outcomes]
        else:
            bad = [runs.c.outcome.in_(BAD)] if failed_only else []
            branches = [sa.and_(runs.c.target_id == i, since, *bad) for i in ids]
        return (
            [_named(row) for row in conn.execute(_newest_of(branches, limit))] if branches else []
        )


def _ids(conn: Connection, device: str) -> list[int]:
    query = (
        sa.select(targets.c.id)
        .join(devices, targets.c.device_id == devices.c.id)
        .where(devices.c.name == device)
    )
    return list(conn.execute(query).scalars())


def _newest_of(branches: Sequence[sa.ColumnElement[bool]], limit: int) -> sa.Select[Any]:
    """Each branch is read along one index, newest first, and no further than needed, however many rows there are."""
    parts = [
        sa.select(
            sa.select(runs).where(branch).order_by(runs.c.plan_ms.desc()).limit(limit).subquery()
        )
        for branch in branches
    ]
    found = sa.union_all(*parts).subquery()
    names = (sa.func.coalesce(devices.c.name, ""), sa.func.coalesce(targets.c.name, ""))
    with_names = found.outerjoin(targets, found.c.target_id == targets.c.id).outerjoin(
        devices, targets.c.device_id == devices.c.id
    )
    newest = (found.c.plan_ms.desc(), found.c.target_id)
    return sa.select(found, *names).select_from(with_names).order_by(*newest).limit(limit)


def lateness(engine: Engine, since_ms: int) -> Lateness:
    """Exact percentiles of start minus slot over the polls planned since then."""
    with sql.peeking(engine) as conn:
        rows = conn.execute(_LATENESS, {"since": since_ms}).all()
    counted = [(int(late), int(many)) for late, many in rows]
    total = sum(many for _, many in counted)
    if not total:
        return Lateness()
    half, most = (_percentile(counted, total, share) for share in (0.5, 0.99))
    return Lateness(total, half, most, counted[-1][0])


def _percentile(counted: Sequence[tuple[int, int]], total: int, share: float) -> float:
    """The smallest value that at least `share` of all values do not exceed."""
    seen = 0
    for value, many in counted:
        seen += many
        if seen >= share * total:
            return value
    return counted[-1][0]


def overlaps(engine: Engine, since_ms: int) -> int:
    """How many runs started before an earlier run of the same target had finished. Must be 0."""
    with sql.peeking(engine) as conn:
        return int(conn.execute(_OVERLAPS, {"since": since_ms}).scalar_one())


def counts(engine: Engine, since_ms: int) -> dict[Result, int]:
    """How many runs had which outcome."""
    with sql.peeking(engine) as conn:
        return {
            Result(outcome): many for outcome, many in conn.execute(_COUNTS, {"since": since_ms})
        }


def _named(row: Any) -> NamedRun:
    fields = dict(zip(_FIELDS, row[:-2], strict=True))
    fields["outcome"] = Result(fields["outcome"])
    return NamedRun(Run(**fields), row[-2], row[-1])


_UPSERT = """ON CONFLICT (target_id, plan_ms) DO UPDATE SET
    attempt = excluded.attempt, outcome = excluded.outcome, error_code = excluded.error_code,
    message = excluded.message, finished_ms = excluded.finished_ms, samples = excluded.samples,
    runner = excluded.runner, token = excluded.token,
    collect_ms = excluded.collect_ms, write_ms = excluded.write_ms,
    started_ms = CASE WHEN runs.token = excluded.token AND runs.started_ms BETWEEN 1 AND excluded.started_ms
                      THEN runs.started_ms ELSE excluded.started_ms END,
    queue_ms = CASE WHEN runs.token = excluded.token AND runs.started_ms BETWEEN 1 AND excluded.started_ms
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
