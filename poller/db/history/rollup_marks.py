"""Marks of days whose roll-ups are to be made: the table `history_pending`.

A day is marked in the transaction that changes its polls. The mark is removed in the transaction
that stores the roll-ups, unless the day was marked again meanwhile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.history import blocks
from poller.db.tables import history_blocks, history_pending
from poller.domain.history.poll_rows import BlockHead
from poller.domain.rollups.touched_days import day_of, touched_days

#: Later than every block.
_ANY_MS = 2**62


class NewPolls(NamedTuple):
    """Polls of a target that came into blocks: the instants of the first and the last one."""

    target_id: int
    first_ms: int
    last_ms: int


class MarkedDay(NamedTuple):
    """A day of a target whose roll-ups are to be made."""

    day_ms: int
    target_id: int
    marks: int


Heads = Mapping[int, Sequence[BlockHead]]


def mark(conn: Connection, polls: Sequence[NewPolls], heads: Heads | None = None) -> None:
    """Mark the days that new polls change.

    `heads` are the blocks that were stored before, in order: all from the day of the first new poll
    on. Without them they are read.
    """
    if not polls:
        return
    if heads is None:
        since_ms = min(day_of(each.first_ms) for each in polls)
        heads = blocks.heads(conn, {each.target_id for each in polls}, since_ms, _ANY_MS)

    days = set()
    for each in polls:
        of_target = heads.get(each.target_id, [])
        before_ms = _before(conn, each, of_target)
        after_ms = _after(each, of_target)
        for day_ms in touched_days(each.first_ms, each.last_ms, before_ms, after_ms):
            days.add((day_ms, each.target_id, 1))
    bulk.insert(conn, history_pending, sorted(days), _COUNT)


def _before(conn: Connection, polls: NewPolls, heads: Sequence[BlockHead]) -> int | None:
    """Return the end of the last block that starts before the new polls, or None."""
    for head in reversed(heads):
        if head.start_ms < polls.first_ms:
            return min(head.end_ms, polls.first_ms)
    values = {"id": polls.target_id, "at": polls.first_ms}
    found: int | None = conn.execute(_BEFORE, values).scalar()
    return found


def _after(polls: NewPolls, heads: Sequence[BlockHead]) -> int | None:
    """Return the start of the first block after the new polls, or None."""
    return next((head.start_ms for head in heads if head.start_ms > polls.last_ms), None)


def due(engine: Engine, before_ms: int, after: tuple[int, int], limit: int) -> list[MarkedDay]:
    """Return marked days that start before an instant, those after a (day, target), in order."""
    values = {"before": before_ms, "day": after[0], "target": after[1], "limit": limit}
    with sql.single_read(engine) as conn:
        return [MarkedDay(*row) for row in conn.execute(_DUE, values)]


def remove(conn: Connection, days: Collection[MarkedDay]) -> None:
    """Remove marks, except those of days that were marked again since they were read."""
    for day in sorted(days):
        conn.execute(_REMOVE, {"day": day.day_ms, "target": day.target_id, "marks": day.marks})


_COUNT = """ON CONFLICT (day_ms, target_id) DO UPDATE SET marks = history_pending.marks + 1"""

_BEFORE = sa.select(sa.func.max(history_blocks.c.end_ms)).where(
    history_blocks.c.target_id == sa.bindparam("id"),
    history_blocks.c.start_ms < sa.bindparam("at"),
)
_p = history_pending.c
_DUE = (
    sa.select(_p.day_ms, _p.target_id, _p.marks)
    .where(
        _p.day_ms < sa.bindparam("before"),
        sa.tuple_(_p.day_ms, _p.target_id) > sa.tuple_(sa.bindparam("day"), sa.bindparam("target")),
    )
    .order_by(_p.day_ms, _p.target_id)
    .limit(sa.bindparam("limit"))
)
_REMOVE = sa.delete(history_pending).where(
    _p.day_ms == sa.bindparam("day"),
    _p.target_id == sa.bindparam("target"),
    _p.marks == sa.bindparam("marks"),
)
