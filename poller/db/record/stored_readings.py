"""Fresh readings in SQL: a poll is one row of packed floats; its shape is stored once for all polls
that share it.

The job `compact-history` moves rows into blocks, but never the newest one of a target. All polls
of a span: `poller.db.history.polls_of_span`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from operator import itemgetter
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import readings, series_sets, targets
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack

#: A shape in use is written again after this long, so that retention keeps it.
ANNOUNCE_AGAIN_MS = 6 * 3600 * 1000
#: The cache of written shapes is cleared beyond this size.
_MAXIMUM_SHAPES = 500_000


@dataclass(frozen=True, slots=True)
class Stored:
    """The readings of one poll. `at_ms` is a UTC instant."""

    target_id: int
    at_ms: int
    readings: ReadingSet


class PackedPoll(NamedTuple):
    """The readings of one poll as they are stored, without their shape."""

    target_id: int
    at_ms: int
    shape_id: int
    packed: bytes

    @property
    def values(self) -> Sequence[float]:
        """The values, in the order of the shape's series."""
        return unpack(self.packed)


class Writer:
    """Writes batches and caches which shapes the database has. One per process, safe for
    threads.
    """

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._announced_ms: dict[int, int] = {}  # instant of the last write, by shape id

    def write(self, batch: Sequence[Stored], now_ms: int) -> None:
        """Store a batch in one transaction. A poll that is already stored stays as it is."""
        new_shapes = self._unannounced(batch, now_ms)
        # Rows are made before the transaction: other writers wait for its end.
        shape_rows = [_shape_row(shape, now_ms) for shape in new_shapes]
        reading_rows = sorted(map(_reading_row, batch), key=_READING_KEY)
        with sql.writing(self._engine) as conn:
            bulk.insert(conn, series_sets, shape_rows, _UPDATE_SEEN)
            bulk.insert(conn, readings, reading_rows, "ON CONFLICT (target_id, at_ms) DO NOTHING")
        # After the commit: a failed transaction has stored no shape.
        self._record_announced(new_shapes, now_ms)

    def _unannounced(self, batch: Sequence[Stored], now_ms: int) -> list[SeriesSet]:
        oldest_ms = now_ms - ANNOUNCE_AGAIN_MS
        shapes = {stored.readings.series.id: stored.readings.series for stored in batch}
        return [
            shapes[shape_id]
            for shape_id in sorted(shapes)
            if self._announced_ms.get(shape_id, oldest_ms) <= oldest_ms
        ]

    def _record_announced(self, shapes: Iterable[SeriesSet], now_ms: int) -> None:
        if len(self._announced_ms) > _MAXIMUM_SHAPES:
            self._announced_ms.clear()
        for shape in shapes:
            self._announced_ms[shape.id] = now_ms


_READING_KEY = itemgetter(0, 1)  # target, instant


def _reading_row(stored: Stored) -> tuple[int, int, int, bytes]:
    values = pack(stored.readings.values)
    return (stored.target_id, stored.at_ms, stored.readings.series.id, values)


def remove_of_target(engine: Engine, target_id: int) -> None:
    """Remove the fresh readings of a target. Raises StoreError."""
    with sql.writing(engine) as conn:
        conn.execute(sa.delete(readings).where(readings.c.target_id == target_id))


def latest_packed(engine: Engine, target_ids: Iterable[int]) -> dict[int, PackedPoll]:
    """Return the newest poll of each of these targets. A target without readings is missing."""
    with sql.reading(engine) as conn:
        rows = conn.execute(_LATEST, {"ids": list(target_ids)})
        return {row.target_id: PackedPoll(*row) for row in rows}


def shapes(engine: Engine, ids: Iterable[int]) -> dict[int, SeriesSet]:
    """Return these shapes by id. A shape that is not stored is missing."""
    with sql.reading(engine) as conn:
        return shapes_in(conn, ids)


def latest(engine: Engine, target_ids: Iterable[int]) -> dict[int, Stored]:
    """Return the newest readings of each of these targets. A target without readings is missing."""
    with sql.reading(engine) as conn:
        rows = conn.execute(_LATEST, {"ids": list(target_ids)}).all()
        return {stored.target_id: stored for stored in with_shapes(conn, rows)}


def with_shapes(conn: Connection, rows: Sequence[Any]) -> list[Stored]:
    """Return the readings of rows of (target id, instant, shape id, packed values).

    A row whose shape is not stored is left out.
    """
    found = shapes_in(conn, {shape_id for _, _, shape_id, _ in rows})
    stored = []
    for target_id, at_ms, shape_id, packed in rows:
        if shape_id in found:
            readings_of_poll = ReadingSet(found[shape_id], unpack(packed))
            stored.append(Stored(target_id, at_ms, readings_of_poll))
    return stored


def shapes_in(conn: Connection, ids: Iterable[int]) -> dict[int, SeriesSet]:
    """Return these shapes by id, in an open transaction. A shape that is not stored is missing."""
    rows = conn.execute(_SHAPES, {"ids": sorted(ids)})
    return {shape_id: _parse_shape(packed) for shape_id, packed in rows}


@lru_cache(maxsize=2048)
def _parse_shape(packed: bytes) -> SeriesSet:
    return SeriesSet.from_packed(packed)


def _shape_row(shape: SeriesSet, now_ms: int) -> tuple[int, bytes, int, int]:
    return (shape.id, shape.packed, len(shape), now_ms)


_UPDATE_SEEN = """ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms
    WHERE series_sets.seen_ms < excluded.seen_ms"""

_columns = (readings.c.target_id, readings.c.at_ms, readings.c.series_set_id, readings.c["values"])

_newest = (
    sa.select(
        targets.c.id.label("target_id"),
        sa.select(sa.func.max(readings.c.at_ms))
        .where(readings.c.target_id == targets.c.id)
        .scalar_subquery()
        .label("at_ms"),
    )
    .where(in_list(targets.c.id, "ids"))
    .subquery()
)
_LATEST = sa.select(*_columns).join(
    _newest,
    sa.and_(readings.c.target_id == _newest.c.target_id, readings.c.at_ms == _newest.c.at_ms),
)

_SHAPES = sa.select(series_sets.c.id, series_sets.c.series).where(in_list(series_sets.c.id, "ids"))
