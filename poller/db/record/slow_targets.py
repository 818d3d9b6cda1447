"""The slowest targets of a collector: by the statistics of a day, or among the newest polls."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record.run_ledger import POLLED
from poller.db.tables import devices, runs, target_days, targets

#: Newest polls of each outcome that are looked through.
NEWEST = 2_000


class SlowTarget(NamedTuple):
    """A target, and how long its polls took. Few polls have no percentiles."""

    device: str
    target: str
    polls: int
    p50_ms: int | None
    p95_ms: int | None
    max_ms: int


def of_day(engine: Engine, collector: str, day_ms: int, limit: int) -> list[SlowTarget]:
    """Return the targets with the largest 95th percentile on a day. Raises StoreError.

    The rows of the day are read by their key, at most one for each target.
    """
    parameters = {"collector": collector, "day": day_ms, "limit": limit}
    with sql.single_read(engine) as conn:
        return [SlowTarget(*row) for row in conn.execute(_OF_DAY, parameters)]


def of_newest(engine: Engine, collector: str, limit: int) -> list[SlowTarget]:
    """Return the targets with the longest of the newest polls of the fleet. Raises StoreError.

    At most `NEWEST` polls of each outcome are read, by the index of outcomes.
    """
    parameters = {"collector": collector, "limit": limit}
    with sql.single_read(engine) as conn:
        return [SlowTarget(*row) for row in conn.execute(_OF_NEWEST, parameters)]


_names = targets.join(devices, targets.c.device_id == devices.c.id)

_OF_DAY = (
    sa.select(
        devices.c.name.label("device"),
        targets.c.name.label("target"),
        target_days.c.polls,
        target_days.c.p50_ms,
        target_days.c.p95_ms,
        target_days.c.max_ms,
    )
    .select_from(target_days.join(_names, target_days.c.target_id == targets.c.id))
    .where(
        target_days.c.day_ms == sa.bindparam("day"),
        targets.c.collector == sa.bindparam("collector"),
        target_days.c.polls > 0,
    )
    .order_by(target_days.c.p95_ms.desc(), targets.c.id)
    .limit(sa.bindparam("limit"))
)


def _newest(outcome: str) -> sa.Select[tuple[int, int]]:
    """The newest polls with an outcome: their targets and lengths."""
    found = (
        sa.select(runs.c.target_id, runs.c.collect_ms)
        .where(runs.c.outcome == sa.literal_column(f"'{outcome}'"))
        .order_by(runs.c.plan_ms.desc())
        .limit(NEWEST)
        .subquery()
    )
    return sa.select(found.c.target_id, found.c.collect_ms)


_polls = sa.union_all(*(_newest(outcome) for outcome in POLLED)).subquery("newest")
_longest = sa.func.max(_polls.c.collect_ms)
_OF_NEWEST = (
    sa.select(
        devices.c.name.label("device"),
        targets.c.name.label("target"),
        sa.func.count().label("polls"),
        sa.null().label("p50_ms"),
        sa.null().label("p95_ms"),
        _longest.label("max_ms"),
    )
    .select_from(_polls.join(_names, _polls.c.target_id == targets.c.id))
    .where(targets.c.collector == sa.bindparam("collector"))
    .group_by(targets.c.id, devices.c.name, targets.c.name)
    .order_by(_longest.desc(), targets.c.id)
    .limit(sa.bindparam("limit"))
)
