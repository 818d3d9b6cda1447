"""What is old enough to go? Bounded deletes, so that nobody who polls ever waits for the broom."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import events, readings, runs, series_sets

#: Rows of one transaction: some tens of milliseconds.
CHUNK = 2_000
#: Most transactions of one pass over a table; the rest waits for the next pass.
CHUNKS = 50
#: A shape nobody announced for this long beyond the readings' own time belongs to no reading any more.
SHAPE_GRACE_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Pruned:
    runs: int
    readings: int
    shapes: int
    events: int


def prune(engine: Engine, now_ms: int, runs_ms: int, readings_ms: int) -> Pruned:
    """Delete what is older than its time. Idempotent; safe beside workers and beside another pass."""
    return Pruned(
        runs=_sweep(engine, runs, runs.c.plan_ms, now_ms - runs_ms),
        readings=_sweep(engine, readings, readings.c.at_ms, now_ms - readings_ms),
        shapes=_sweep(engine, series_sets, series_sets.c.seen_ms, now_ms - readings_ms - SHAPE_GRACE_MS),
        events=_sweep(engine, events, events.c.at_ms, now_ms - runs_ms),
    )


def _sweep(engine: Engine, table: sa.Table, age: sa.Column[int], before_ms: int) -> int:
    return sum(_deleted(engine, table, age, before_ms))


def _deleted(engine: Engine, table: sa.Table, age: sa.Column[int], before_ms: int) -> Iterator[int]:
    keys = list(table.primary_key.columns)
    oldest = sa.select(*keys).where(age < before_ms).order_by(age).limit(CHUNK)
    statement = sa.delete(table).where(sa.tuple_(*keys).in_(oldest))
    for _ in range(CHUNKS):
        with sql.writing(engine) as conn:
            gone = conn.execute(statement).rowcount
        yield gone
        if gone < CHUNK:
            return
