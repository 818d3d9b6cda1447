"""Delete rows that are older than their retention, in bounded steps with pauses between them.

The pauses let writers through: a poll never waits for a long delete. A row ages only with time that
newer rows prove, so a clock that jumps ahead deletes nothing (row_gaps.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.inventory import inventory_feed
from poller.db.record import row_gaps
from poller.db.record.row_gaps import Gap, Source
from poller.db.record.run_ledger import BAD
from poller.db.tables import removed_targets, series_sets

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
    """Numbers of deleted rows, and the gap before which rows past their retention were kept."""

    runs: int = 0
    runs_failed: int = 0
    readings: int = 0
    shapes: int = 0
    events: int = 0
    kept_before: Gap | None = None


def prune(
    engine: Engine, now_ms: int, ages: Ages, sleep: Callable[[float], None] = time.sleep
) -> Pruned:
    """Delete rows older than their retention. Idempotent; safe beside workers and another pass."""
    gaps = row_gaps.recent(engine, now_ms)
    proven_ms = now_ms - sum(gap.uncounted_ms for gap in gaps)
    deletes = _BoundedDeletes(engine, sleep, time.monotonic() + SECONDS)
    shapes_ms = ages.readings_ms + SHAPE_GRACE_MS

    counts: Counter[str] = Counter()
    for field, source, age_ms in _sources(ages):
        counts[field] += deletes.older_than(source, proven_ms - age_ms)
    shapes = deletes.older_than(Source(series_sets.c.seen_ms), proven_ms - shapes_ms)

    kept_before = max(gaps, key=_length) if _keeps_all(engine, gaps, now_ms, ages) else None
    return Pruned(**counts, shapes=shapes, kept_before=kept_before)


def prune_removals(
    engine: Engine, applied: int, sleep: Callable[[float], None] = time.sleep
) -> int:
    """Delete removals up to the version that is applied to the board, and mark that version.

    A reader of older changes then knows that removals are missing (inventory_feed.Changes).
    """
    with sql.writing(engine) as conn:
        if not inventory_feed.mark_removals_pruned(conn, applied):
            return 0
    deletes = _BoundedDeletes(engine, sleep, time.monotonic() + SECONDS)
    is_removal = removed_targets.c.target_id != inventory_feed.PRUNED_MARK
    return deletes.older_than(Source(removed_targets.c.version, (is_removal,)), applied + 1)


def _sources(ages: Ages) -> Iterator[tuple[str, Source, int]]:
    """The field of `Pruned`, the rows and the retention of each kind of row."""
    for outcome, source in row_gaps.RUNS.items():
        if outcome in BAD:
            yield "runs_failed", source, ages.runs_failed_ms
        else:
            yield "runs", source, ages.runs_ms
    yield "readings", row_gaps.READINGS, ages.readings_ms
    yield "events", row_gaps.EVENTS, ages.events_ms


def _keeps_all(engine: Engine, gaps: Sequence[Gap], now_ms: int, ages: Ages) -> bool:
    """True if the clock alone would delete every row of some kind from before the gaps."""
    uncounted_ms = sum(gap.uncounted_ms for gap in gaps)
    with sql.reading(engine) as conn:
        for _, source, age_ms in _sources(ages):
            if uncounted_ms < age_ms:
                continue
            if row_gaps.newest_before(conn, now_ms - age_ms, (source,)) is not None:
                return True
    return False


def _length(gap: Gap) -> int:
    return gap.uncounted_ms


class _BoundedDeletes:
    """One pass: it ends at `until_mono`, or when nothing old is left."""

    def __init__(self, engine: Engine, sleep: Callable[[float], None], until_mono: float) -> None:
        self._engine = engine
        self._sleep = sleep
        self._until_mono = until_mono

    def older_than(self, source: Source, before: int) -> int:
        """Delete the oldest rows first and return their number.

        After each step the pass sleeps as long as the step took, so that writers get the lock.
        """
        age = source.instant
        table = age.table
        keys = list(table.primary_key.columns)
        old = sa.select(*keys).where(*source.conditions, age < before)
        oldest = old.order_by(age).limit(CHUNK)
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
