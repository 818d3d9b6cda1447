"""Delete rows that are older than their retention, in bounded steps with pauses between them.

The pauses let writers through: a poll never waits for a long delete. A row ages only with time that
newer rows prove, so a clock that jumps ahead deletes nothing (row_gaps.py).
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.history import partitions
from poller.db.inventory import inventory_feed
from poller.db.record import row_gaps, unrolled_polls
from poller.db.record.row_gaps import Gap, Source
from poller.db.record.run_pages import BAD
from poller.db.tables import (
    history_1h,
    history_5m,
    history_blocks,
    removed_targets,
    series_sets,
    target_days,
)

#: Rows deleted by one transaction: some tens of milliseconds.
CHUNK = 1_000
#: Rows of one table, or of one outcome, deleted by one pass at most.
ROWS = 2_000_000
#: Duration of one pass at most. The next pass starts five minutes later.
SECONDS = 240.0
#: What stays of a table whose rows are all past their retention, and for how long.
LAST_DAY_MS = 86_400_000
LAST_DAY_STAYS_MS = row_gaps.PROOF_MS
#: A shape that was not announced for this long beyond the readings' retention has no reading left.
SHAPE_GRACE_MS = 86_400_000

#: The span that a row of a roll-up holds from its start on, at most.
_DAY_MS = 86_400_000
#: Tables that PostgreSQL has in partitions, each with the span of a row.
_PARTITIONED = {history_blocks: 0, history_5m: _DAY_MS, history_1h: _DAY_MS}

#: Later than every row.
_ANY_MS = 2**62


@dataclass(frozen=True, slots=True)
class Ages:
    """Retention of each kind of row."""

    runs_ms: int
    runs_failed_ms: int
    readings_ms: int
    events_ms: int
    target_days_ms: int
    history_5m_ms: int = 0
    history_1h_ms: int = 0

    @property
    def has_rollups(self) -> bool:
        """Whether roll-ups outlive the readings that they are made of."""
        return self.history_5m_ms > 0 or self.history_1h_ms > 0

    @property
    def shapes_ms(self) -> int:
        """How long a shape may be needed after it was last announced."""
        held_ms = unrolled_polls.LONGEST_MS if self.has_rollups else 0
        return max(self.readings_ms + held_ms, self.history_5m_ms, self.history_1h_ms)


class Leftover(NamedTuple):
    """A table whose rows are all past their retention. Those from this instant on stay."""

    table: str
    since_ms: int


@dataclass(frozen=True, slots=True)
class Pruned:
    """Numbers of deleted rows, and what was kept past its retention.

    `proven_ms` is the instant that counts as now. Rows before the gap `kept_before` were kept.
    """

    runs: int = 0
    runs_failed: int = 0
    readings: int = 0
    shapes: int = 0
    events: int = 0
    target_days: int = 0
    blocks: int = 0
    rollups: int = 0
    partitions: int = 0
    kept_before: Gap | None = None
    leftovers: tuple[Leftover, ...] = ()
    proven_ms: int = field(default=0, compare=False)

    @property
    def counts(self) -> dict[str, int]:
        """Numbers of deleted rows by kind."""
        return {name: getattr(self, name) for name in _COUNTED}


_COUNTED = (
    "runs",
    "runs_failed",
    "readings",
    "shapes",
    "events",
    "target_days",
    "blocks",
    "rollups",
    "partitions",
)
#: Polls are in two tables: what stays of them stays of both.
_FAMILIES = {"runs": "runs", "readings": "readings", "history_blocks": "readings"}


def prune(
    engine: Engine,
    now_ms: int,
    ages: Ages,
    sleep: Callable[[float], None] = time.sleep,
    until_mono: float | None = None,
) -> Pruned:
    """Delete rows older than their retention. Idempotent; safe beside workers and another pass."""
    gaps = row_gaps.recent(engine, now_ms)
    proven_ms = now_ms - sum(gap.uncounted_ms for gap in gaps)
    leftovers = _leftovers(engine, proven_ms, ages)
    kept_since_ms = {leftover.table: leftover.since_ms for leftover in leftovers}
    deletes = _BoundedDeletes(engine, sleep, until_mono)
    shapes_ms = ages.shapes_ms + SHAPE_GRACE_MS + LAST_DAY_STAYS_MS

    counts: Counter[str] = Counter()
    for kind, source, age_ms in _sources(ages):
        family = _FAMILIES.get(source.instant.table.name, "")
        before_ms = min(proven_ms - age_ms, kept_since_ms.get(family, proven_ms))
        table = source.instant.table
        if ages.has_rollups:
            before_ms = unrolled_polls.deletable_before(engine, table, before_ms)
        if table in _PARTITIONED and engine.dialect.name == "postgresql":
            # Whole partitions only: rows of the others wait until their day or month is over.
            before_ms = partitions.begin_of(table, before_ms + _PARTITIONED[table])
            counts["partitions"] += partitions.drop_before(engine, table, before_ms)
        counts[kind] += deletes.older_than(source, before_ms)
    shapes = deletes.older_than(Source(series_sets.c.seen_ms), proven_ms - shapes_ms)

    kept_before = max(gaps, key=_length) if _keeps_all(engine, gaps, now_ms, ages) else None
    return Pruned(
        **counts,
        shapes=shapes,
        kept_before=kept_before,
        leftovers=leftovers,
        proven_ms=proven_ms,
    )


def _leftovers(engine: Engine, proven_ms: int, ages: Ages) -> tuple[Leftover, ...]:
    """The tables of polls that would be emptied, although their rows have not been old for long.

    Polls fill these tables all the time. A table without a young row was not filled for as long as
    its retention, or a clock is wrong by less than a gap.
    """
    by_table: dict[str, list[tuple[Source, int]]] = {"runs": [], "readings": []}
    for _, source, age_ms in _sources(ages):
        name = _FAMILIES.get(source.instant.table.name, "")
        if name in by_table:
            by_table[name].append((source, age_ms))
    found = []
    with sql.reading(engine) as conn:
        for table, sources in by_table.items():
            since_ms = _last_day_ms(conn, proven_ms, sources)
            if since_ms is not None:
                found.append(Leftover(table, since_ms))
    return tuple(found)


def _last_day_ms(
    conn: Connection, proven_ms: int, sources: Sequence[tuple[Source, int]]
) -> int | None:
    """The start of the newest day of rows that are all past their retention.

    None if a row is younger, if there is no row, or if the week after the retention is over.
    """
    starts = []
    overdue = []
    for source, age_ms in sources:
        newest_ms = row_gaps.newest_before(conn, _ANY_MS, (source,))
        if newest_ms is not None:
            starts.append(newest_ms - min(age_ms, LAST_DAY_MS))
            overdue.append(proven_ms - age_ms - newest_ms)
    if not overdue or not 0 < min(overdue) < LAST_DAY_STAYS_MS:
        return None
    return max(starts)


def prune_removals(
    engine: Engine,
    applied: int,
    sleep: Callable[[float], None] = time.sleep,
    until_mono: float | None = None,
) -> int:
    """Delete removals up to the version that is applied to the board, and mark that version.

    A reader of older changes then knows that removals are missing (inventory_feed.Changes).
    """
    with sql.writing(engine) as conn:
        if not inventory_feed.mark_removals_pruned(conn, applied):
            return 0
    deletes = _BoundedDeletes(engine, sleep, until_mono)
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
    yield "blocks", row_gaps.BLOCKS, ages.readings_ms
    yield "rollups", Source(history_5m.c.start_ms), ages.history_5m_ms + _DAY_MS
    yield "rollups", Source(history_1h.c.start_ms), ages.history_1h_ms + _DAY_MS
    yield "events", row_gaps.EVENTS, ages.events_ms
    yield "target_days", Source(target_days.c.day_ms), ages.target_days_ms


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
    """One pass: it ends at `until_mono`, by default after SECONDS, or when nothing old is left."""

    def __init__(
        self, engine: Engine, sleep: Callable[[float], None], until_mono: float | None
    ) -> None:
        self._engine = engine
        self._sleep = sleep
        self._until_mono = time.monotonic() + SECONDS if until_mono is None else until_mono

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
