"""Runs of targets counted by slots of time and by outcome, for the strip of a device."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import runs
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS
from poller.domain.record.slot_strip import RunCount


def counts(
    engine: Engine, target_ids: Collection[int], since_ms: int, until_ms: int
) -> dict[int, list[RunCount]]:
    """Return the counts of each target over [since, until) of plan times. Raises StoreError."""
    found: dict[int, list[RunCount]] = {target_id: [] for target_id in target_ids}
    if not found:
        return found
    # A literal: PostgreSQL takes two parameters for two expressions and refuses to group by one.
    length = sa.literal_column(str(SLOT_MS), sa.BigInteger)
    slot_ms = (runs.c.plan_ms - runs.c.plan_ms % length).label("slot_ms")
    query = (
        sa.select(runs.c.target_id, slot_ms, runs.c.outcome, sa.func.count().label("number"))
        .where(in_list(runs.c.target_id, target_ids))
        .where(runs.c.plan_ms >= since_ms, runs.c.plan_ms < until_ms)
        .group_by(runs.c.target_id, slot_ms, runs.c.outcome)
    )
    with sql.reading(engine) as conn:
        for row in conn.execute(query):
            count = RunCount(row.slot_ms, Result(row.outcome), row.number)
            found[row.target_id].append(count)
    return found
