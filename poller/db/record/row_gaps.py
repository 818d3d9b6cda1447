"""Long stretches of time in which no row was written.

After such a stretch the clocks may be wrong, or the installation was off. Nothing in the database
tells one from the other, so the stretch does not count as age until a week of rows follows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.tables import events, history_blocks, job_runs, readings, runs
from poller.domain.failures.outcome import Result

#: A longer stretch without a row is a gap. A target that is polled once a day leaves none.
GAP_MS = 2 * 86_400_000
#: Rows over this time, gaps not counted, show that the clocks are right.
PROOF_MS = 7 * 86_400_000


class Source(NamedTuple):
    """Rows with an instant, found by an index."""

    instant: sa.Column[int]
    conditions: tuple[sa.ColumnElement[bool], ...] = ()


RUNS = {outcome: Source(runs.c.plan_ms, (runs.c.outcome == outcome,)) for outcome in Result}
READINGS = Source(readings.c.at_ms)
#: Blocks of polls, each by its last one.
BLOCKS = Source(history_blocks.c.end_ms)
EVENTS = Source(events.c.at_ms)
#: Jobs run also where nothing is polled.
JOB_RUNS = Source(job_runs.c.finished_ms)
SOURCES = (*RUNS.values(), READINGS, BLOCKS, EVENTS, JOB_RUNS)


class Gap(NamedTuple):
    """The instants of the rows before and after a stretch without rows."""

    since_ms: int
    until_ms: int

    @property
    def uncounted_ms(self) -> int:
        return self.until_ms - self.since_ms - GAP_MS


def recent(engine: Engine, now_ms: int) -> list[Gap]:
    """Return the gaps that no PROOF_MS of rows follows, the newest first. Raises StoreError."""
    with sql.reading(engine) as conn:
        return list(_recent(conn, now_ms))


def _recent(conn: Connection, now_ms: int) -> Iterator[Gap]:
    """Walk back from now, at most GAP_MS a step. About four steps when there is no gap."""
    at_ms = now_ms
    proven_ms = 0
    while proven_ms < PROOF_MS:
        older_ms = _first_since(conn, at_ms - GAP_MS, at_ms)
        if older_ms is not None:
            proven_ms += at_ms - older_ms
        else:
            older_ms = newest_before(conn, at_ms, SOURCES)
            if older_ms is None:
                return
            yield Gap(older_ms, at_ms)
            proven_ms += GAP_MS
        at_ms = older_ms


def newest_before(conn: Connection, before_ms: int, sources: tuple[Source, ...]) -> int | None:
    """Return the instant of the newest row before this instant, or None."""
    found = [
        _ordered(source, source.instant.desc(), source.instant < before_ms) for source in sources
    ]
    return _extreme(conn, sa.func.max, found)


def _first_since(conn: Connection, since_ms: int, before_ms: int) -> int | None:
    """Return the instant of the oldest row from `since_ms` on and before `before_ms`, or None."""
    found = []
    for source in SOURCES:
        instant = source.instant
        found.append(_ordered(source, instant, instant >= since_ms, instant < before_ms))
    return _extreme(conn, sa.func.min, found)


def _ordered(
    source: Source, order: sa.ColumnElement[int], *conditions: sa.ColumnElement[bool]
) -> sa.Select[tuple[int]]:
    """Select the first instant in this order: one step in an index."""
    query = sa.select(source.instant.label("at_ms")).where(*source.conditions, *conditions)
    first = query.order_by(order).limit(1).subquery()
    return sa.select(first.c.at_ms)


def _extreme(conn: Connection, function: Any, queries: list[sa.Select[tuple[int]]]) -> int | None:
    union = sa.union_all(*queries).subquery()
    value = conn.execute(sa.select(function(union.c.at_ms))).scalar()
    return None if value is None else int(value)
