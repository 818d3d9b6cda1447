"""What is old enough to go? Bounded deletes with pauses, so that nobody who polls ever waits for the broom."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.record.run_ledger import BAD
from poller.db.tables import events, readings, runs, series_sets
from poller.domain.failures.outcome import Result

#: Rows of one transaction: some tens of milliseconds.
CHUNK = 1_000
#: Most rows of one table, or one outcome, in one pass; the rest waits for the next one.
ROWS = 2_000_000
#: And the longest pass: the next one starts five minutes after it.
SECONDS = 240.0
#: A shape nobody announced for this long beyond the readings' own time belongs to no reading any more.
SHAPE_GRACE_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Ages:
    """How old things may become, in milliseconds."""

    runs_ms: int
    runs_failed_ms: int
    readings_ms: int
    events_ms: int


@dataclass(frozen=True, slots=True)
class Pruned:
    runs: int = 0
    runs_failed: int = 0
    readings: int = 0
    shapes: int = 0
    events: int = 0


def prune(
    engine: Engine, now_ms: int, ages: Ages, sleep: Callable[[float], None] = time.sleep
) -> Pruned:
    """Delete what is older than its time. Idempotent; safe beside workers and beside another pass."""
    broom = _Broom(engine, sleep, time.monotonic() + SECONDS)
    shapes_ms = ages.readings_ms + SHAPE_GRACE_MS
    return Pruned(
        runs=sum(
            broom.runs(outcome, now_ms - ages.runs_ms) for outcome in Result if outcome not in BAD
        ),
        runs_failed=sum(broom.runs(outcome, now_ms - ages.runs_failed_ms) for outcome in BAD),
        readings=broom.sweep(
            readings, readings.c.at_ms, readings.c.at_ms < now_ms - ages.readings_ms
        ),
        shapes=broom.sweep(
            series_sets, series_sets.c.seen_ms, series_sets.c.seen_ms < now_ms - shapes_ms
        ),
        events=broom.sweep(events, events.c.at_ms, events.c.at_ms < now_ms - ages.events_ms),
    )


class _Broom:
    def __init__(self, engine: Engine, sleep: Callable[[float], None], until: float) -> None:
        self._engine, self._sleep, self._until = engine, sleep, until

    def runs(self, outcome: Result, before_ms: int) -> int:
        return self.sweep(
            runs, runs.c.plan_ms, runs.c.outcome == outcome, runs.c.plan_ms < before_ms
        )

    def sweep(self, table: sa.Table, age: sa.Column[int], *old: sa.ColumnElement[bool]) -> int:
        """The oldest first. Rests as long as it works, so that others get the lock, and gives up at the end."""
        keys = list(table.primary_key.columns)
        oldest = sa.select(*keys).where(*old).order_by(age).limit(CHUNK)
        statement = sa.delete(table).where(sa.tuple_(*keys).in_(oldest))
        total = 0
        while total < ROWS and time.monotonic() < self._until:
            began = time.monotonic()
            with sql.writing(self._engine) as conn:
                gone = conn.execute(statement).rowcount
            total += gone
            if gone < CHUNK:
                break
            self._sleep(time.monotonic() - began)
        return total
