"""Statistics of targets by UTC day: made from their runs, stored, and read.

The percentiles are counted by the database, so that a day of a large fleet is never in memory here.
A percentile is the smallest value that at least this share of all values do not exceed.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.record.run_ledger import POLLED
from poller.db.tables import runs, target_days
from poller.domain.failures.outcome import Result
from poller.domain.record.target_day import DAY_MS, TargetDay

_FIELDS = TargetDay._fields


def targets_with_runs(engine: Engine, after: int, limit: int) -> list[int]:
    """Ids of targets that have runs, from the one after `after` on; also of removed targets.

    One step in an index for each. Raises StoreError.
    """
    with sql.single_read(engine) as conn:
        found = conn.execute(_TARGETS, {"after": after, "limit": limit}).scalars()
        return [target_id for target_id in found if target_id is not None]


def count_day(engine: Engine, day_ms: int, ids: Collection[int]) -> list[TargetDay]:
    """Count the runs of these targets that were planned on this day. Raises StoreError."""
    parameters = {"ids": list(ids), "since": day_ms, "until": day_ms + DAY_MS}
    with sql.single_read(engine) as conn:
        rows = conn.execute(_COUNTED, parameters).all()
    return [_target_day(day_ms, row) for row in rows]


def write(engine: Engine, days: Sequence[TargetDay]) -> None:
    """Store days. Idempotent: a day that was counted again is replaced, unless runs are missing by
    now. Raises StoreError.
    """
    with sql.writing(engine) as conn:
        bulk.insert(conn, target_days, sorted(days), _UPSERT, _FIELDS)


def listing(engine: Engine, ids: Collection[int], first_ms: int, last_ms: int) -> list[TargetDay]:
    """The stored days of these targets from the first to the last day, in this order.

    Both instants are starts of days. Each row is found by its key. Raises StoreError.
    """
    days = range(first_ms, last_ms + 1, DAY_MS)
    parameters = {"ids": list(ids), "days": list(days)}
    with sql.single_read(engine) as conn:
        return [TargetDay(*row) for row in conn.execute(_LISTED, parameters)]


def _target_day(day_ms: int, row: Any) -> TargetDay:
    polls = int(row.polls)
    mean_ms = round(int(row.duration_ms or 0) / polls) if polls else 0
    return TargetDay(
        day_ms=day_ms,
        target_id=row.target_id,
        polls=polls,
        ok=int(row.ok),
        partial=int(row.partial),
        failed=int(row.failed),
        unpolled=int(row.unpolled),
        mean_ms=mean_ms,
        p50_ms=row.p50_ms or 0,
        p95_ms=row.p95_ms or 0,
        max_ms=row.max_ms or 0,
        late_p95_ms=row.late_p95_ms or 0,
    )


_first = sa.select(sa.func.min(runs.c.target_id).label("id")).where(
    runs.c.target_id > sa.bindparam("after")
)
_ids = _first.cte("ids", recursive=True)
_next = sa.select(sa.func.min(runs.c.target_id)).where(runs.c.target_id > _ids.c.id)
_walk = _ids.union_all(sa.select(_next.scalar_subquery()).where(_ids.c.id.is_not(None)))
_TARGETS = sa.select(_walk.c.id).limit(sa.bindparam("limit"))

_is_polled = sa.case((sa.and_(runs.c.outcome.in_(POLLED), runs.c.started_ms > 0), 1), else_=0)
_lasted = runs.c.finished_ms - runs.c.started_ms
_duration = sa.case((_lasted > 0, _lasted), else_=0)
_late = runs.c.started_ms - runs.c.plan_ms


def _rank(value: sa.ColumnElement[int]) -> sa.ColumnElement[int]:
    partition = (runs.c.target_id, _is_polled)
    return sa.func.row_number().over(partition_by=partition, order_by=value)


_ranked = (
    sa.select(
        runs.c.target_id,
        runs.c.outcome,
        _is_polled.label("is_polled"),
        _duration.label("duration_ms"),
        _late.label("late_ms"),
        _rank(_duration).label("duration_rank"),
        _rank(_late).label("late_rank"),
        sa.func.count().over(partition_by=(runs.c.target_id, _is_polled)).label("polls"),
    )
    .where(
        in_list(runs.c.target_id, "ids"),
        runs.c.plan_ms >= sa.bindparam("since"),
        runs.c.plan_ms < sa.bindparam("until"),
    )
    .subquery("ranked")
)


def _of_polls(value: sa.ColumnElement[Any], *conditions: sa.ColumnElement[bool]) -> Any:
    return sa.case((sa.and_(_ranked.c.is_polled == 1, *conditions), value))


def _number(*conditions: sa.ColumnElement[bool]) -> Any:
    return sa.func.count(_of_polls(sa.literal(1), *conditions))


def _percentile(value: sa.ColumnElement[int], rank: sa.ColumnElement[int], percent: int) -> Any:
    return sa.func.min(_of_polls(value, rank * 100 >= _ranked.c.polls * percent))


_COUNTED = (
    sa.select(
        _ranked.c.target_id,
        _number().label("polls"),
        _number(_ranked.c.outcome == Result.OK).label("ok"),
        _number(_ranked.c.outcome == Result.PARTIAL).label("partial"),
        _number(_ranked.c.outcome == Result.FAILED).label("failed"),
        (sa.func.count() - _number()).label("unpolled"),
        sa.func.sum(_of_polls(_ranked.c.duration_ms)).label("duration_ms"),
        _percentile(_ranked.c.duration_ms, _ranked.c.duration_rank, 50).label("p50_ms"),
        _percentile(_ranked.c.duration_ms, _ranked.c.duration_rank, 95).label("p95_ms"),
        sa.func.max(_of_polls(_ranked.c.duration_ms)).label("max_ms"),
        _percentile(_ranked.c.late_ms, _ranked.c.late_rank, 95).label("late_p95_ms"),
    )
    .group_by(_ranked.c.target_id)
    .order_by(_ranked.c.target_id)
)

_LISTED = (
    sa.select(*(target_days.c[name] for name in _FIELDS))
    .where(in_list(target_days.c.day_ms, "days"), in_list(target_days.c.target_id, "ids"))
    .order_by(target_days.c.day_ms, target_days.c.target_id)
)

_UPSERT = (
    "ON CONFLICT (day_ms, target_id) DO UPDATE SET "
    + ", ".join(f"{name} = excluded.{name}" for name in _FIELDS[2:])
    # Runs of that day may have been pruned since it was counted.
    + " WHERE excluded.polls + excluded.unpolled >= target_days.polls + target_days.unpolled"
)
