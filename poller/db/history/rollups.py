"""Roll-ups in SQL: the tables `history_5m` and `history_1h`, a row per target and UTC day each.

The roll-ups of a day are a function of its polls and of the polls beside them. They are made when
the day is over, and anew when late results changed it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.history import plain_rows, polls_of_span, rollup_marks
from poller.db.history.plain_rows import PlainRows
from poller.db.history.rollup_marks import MarkedDay, NewPolls
from poller.db.record import stored_readings
from poller.db.tables import history_1h, history_5m, targets
from poller.domain.metrics import series_identity
from poller.domain.metrics.reading import Series
from poller.domain.metrics.series_identity import Identity

if TYPE_CHECKING:
    from poller.domain.history.block import Block
    from poller.domain.history.poll_rows import BlockHead
    from poller.domain.rollups.rollup import Buckets, Rollup


@dataclass(frozen=True, slots=True)
class Touched:
    """Polls of a target that came new into blocks: the instants of the first and the last one.

    `blocks` are the blocks that were written; they hold these polls and older ones. `heads` are
    those that were stored before, from the day of the first poll on.
    """

    target_id: int
    first_ms: int
    last_ms: int
    blocks: Sequence[Block]
    heads: Sequence[BlockHead]


def remake(conn: Connection, touched: Sequence[Touched]) -> None:
    """See that the roll-ups of the touched days are made anew."""
    rollup_marks.mark(
        conn,
        [NewPolls(each.target_id, each.first_ms, each.last_ms) for each in touched],
        {each.target_id: each.heads for each in touched},
    )


class PlainKept(NamedTuple):
    """Which series also have plain rows for SQL, and since when."""

    selects: Callable[[Series], bool]
    since_ms: int


class Kept(NamedTuple):
    """Which roll-ups are made, and since when all polls of a day are still stored."""

    five_minutes: bool = True
    hours: bool = True
    complete_since_ms: int = 0
    plain: PlainKept | None = None


class _Rolled(NamedTuple):
    """The roll-ups of a marked day; None: its polls say nothing."""

    day: MarkedDay
    rollup: Rollup | None


def make(engine: Engine, days: Sequence[MarkedDay], kept: Kept) -> int:
    """Make and store the roll-ups of marked days, all or none. Returns the number of rows.

    Idempotent. A day that has lost polls by now keeps its stored roll-ups. Raises StoreError.
    """
    with sql.reading(engine) as conn:
        rolled = [_Rolled(day, _of_day(conn, day)) for day in days]
        plain = _plain(conn, rolled, kept)
    # Rows are made before the transaction: other writers wait for its end.
    rows_5m = _rows(rolled, 1) if kept.five_minutes else []
    rows_1h = _rows(rolled, 12) if kept.hours else []
    with sql.writing(engine) as conn:
        _store(conn, history_5m, rows_5m, kept.complete_since_ms)
        _store(conn, history_1h, rows_1h, kept.complete_since_ms)
        plain_rows.replace(conn, plain)
        rollup_marks.remove(conn, days)
    return len(rows_5m) + len(rows_1h)


def _store(
    conn: Connection, table: sa.Table[Any], rows: Sequence[_Row], complete_since_ms: int
) -> None:
    """Store the rows of days; those of a day that has lost polls only if it has none yet."""
    whole = [row for row in rows if row.start_ms >= complete_since_ms]
    rest = [row for row in rows if row.start_ms < complete_since_ms]
    bulk.insert(conn, table, whole, _REPLACE)
    bulk.insert(conn, table, rest, _KEEP)


class _Row(NamedTuple):
    target_id: int
    start_ms: int
    data: bytes


def _rows(rolled: Sequence[_Rolled], factor: int) -> list[_Row]:
    from poller.domain.rollups import rollup, rollup_codec

    rows = []
    for day, fine in rolled:
        if fine is not None:
            data = rollup_codec.encode(rollup.coarser(fine, factor) if factor > 1 else fine)
            rows.append(_Row(day.target_id, day.day_ms, data))
    return sorted(rows)


def _plain(conn: Connection, rolled: Sequence[_Rolled], kept: Kept) -> list[PlainRows]:
    """Return the plain rows of days that have all their polls."""
    if kept.plain is None:
        return []
    since_ms = max(kept.plain.since_ms, kept.complete_since_ms)
    return [
        plain_of(conn, day.target_id, fine, kept.plain.selects)
        for day, fine in rolled
        if fine is not None and day.day_ms >= since_ms
    ]


def plain_of(
    conn: Connection, target_id: int, part: Rollup, selects: Callable[[Series], bool]
) -> PlainRows:
    """Return the selected series of a roll-up as plain rows."""
    by = _terms(conn, target_id)[1]
    return plain_rows.of_rollup(conn, target_id, part, by, selects)


def _of_day(conn: Connection, day: MarkedDay) -> Rollup | None:
    from poller.domain.rollups import rollup

    buckets = rollup.of_day(day.day_ms, rollup.FIVE_MINUTES_MS)
    return from_polls(conn, day.target_id, buckets)


def from_polls(
    conn: Connection,
    target_id: int,
    buckets: Buckets,
    selects: Callable[[Series], bool] | None = None,
) -> Rollup | None:
    """Roll up the stored polls of a target, with `selects` only some series.

    Returns None if the polls say nothing. Raises StoreError.
    """
    from poller.domain.rollups import day_rollup, sample_columns

    blocks = polls_of_span.around(conn, target_id, buckets.start_ms, buckets.end_ms)
    shape_ids = {segment.shape_id for block in blocks for segment in block.segments}
    if not shape_ids:
        return None
    interval_ms, by = _terms(conn, target_id)
    polls = sample_columns.joined(blocks, stored_readings.shapes_in(conn, shape_ids))
    return day_rollup.roll_up(polls, buckets, interval_ms, by, selects)


def _terms(conn: Connection, target_id: int) -> tuple[int, Identity]:
    """Return the longest planned interval and the identity of a target; 0 if it was removed."""
    row: Any = conn.execute(_TERMS, {"id": target_id}).one_or_none()
    if row is None:
        return 0, Identity.IF_NAME
    return row.max_ms or row.interval_ms, series_identity.identity_option(row.options)


_REPLACE = "ON CONFLICT (target_id, start_ms) DO UPDATE SET data = excluded.data"
_KEEP = "ON CONFLICT (target_id, start_ms) DO NOTHING"
_TERMS = sa.select(targets.c.interval_ms, targets.c.max_ms, targets.c.options).where(
    targets.c.id == sa.bindparam("id")
)
