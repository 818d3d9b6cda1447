"""Delete rows that are older than their retention, in bounded steps with pauses between them.

The pauses let writers through: a poll never waits for a long delete.
"""

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

#: Rows deleted by one transaction: some tens of milliseconds.
CHUNK = 1_000
#: Rows of one table, or of one outcome, deleted by one pass at most.
ROWS = 2_000_000
#: Duration of one pass at most. The next pass starts five minutes later.
SECONDS = 240.0
#: A shape that was not announced for this long beyond the readings' retention has no reading left.
SHAPE_GRACE_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Ages:
    """Retention of each kind of row."""

    runs_ms: int
    runs_failed_ms: int
    readings_ms: int
    events_ms: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of deleted rows."""

    runs: int = 0
    runs_failed: int = 0
    readings: int = 0
    shapes: int = 0
    events: int = 0


def prune(
    engine: Engine, now_ms: int, ages: Ages, sleep: Callable[[float], None] = time.sleep
) -> Pruned:
    """Delete rows older than their retention. Idempotent; safe beside workers and another pass."""
    deletes = _BoundedDeletes(engine, sleep, time.monotonic() + SECONDS)
    shapes_ms = ages.readings_ms + SHAPE_GRACE_MS
    good = [outcome for outcome in Result if outcome not in BAD]
    return Pruned(
        runs=sum(deletes.runs(outcome, now_ms - ages.runs_ms) for outcome in good),
        runs_failed=sum(deletes.runs(outcome, now_ms - ages.runs_failed_ms) for outcome in BAD),
        readings=deletes.older_than(readings.c.at_ms, now_ms - ages.readings_ms),
        shapes=deletes.older_than(series_sets.c.seen_ms, now_ms - shapes_ms),
        events=deletes.older_than(events.c.at_ms, now_ms - ages.events_ms),
    )


class _BoundedDeletes:
    """One pass: it ends at `until_mono`, or when nothing old is left."""

    def __init__(self, engine: Engine, sleep: Callable[[float], None], until_mono: float) -> None:
        self._engine = engine
        self._sleep = sleep
        self._until_mono = until_mono

    def runs(self, outcome: Result, before_ms: int) -> int:
        return self.older_than(runs.c.plan_ms, before_ms, runs.c.outcome == outcome)

    def older_than(
        self, age: sa.Column[int], before_ms: int, *conditions: sa.ColumnElement[bool]
    ) -> int:
        """Delete the oldest rows first and return their number.

        After each step the pass sleeps as long as the step took, so that writers get the lock.
        """
        table = age.table
        keys = list(table.primary_key.columns)
        oldest = sa.select(*keys).where(*conditions, age < before_ms).order_by(age).limit(CHUNK)
        statement = sa.delete(table).where(sa.tuple_(*keys).in_(oldest))
        total = 0
        while total < ROWS and time.monotonic() < self._until_mono:
            started_mono = time.monotonic()
            with sql.writing(self._engine) as conn:
                deleted = conn.execute(statement).rowcount
            total += deleted
            if deleted < CHUNK:
                break
            self._sleep(time.monotonic() - started_mono)
        return total
