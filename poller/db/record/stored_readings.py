"""Readings in SQL: a poll is one row of packed floats; its shape is stored once for all that share it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.tables import readings, series_sets, targets
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack, unpack

#: A shape in use is announced again after this long, so that pruning can tell it from a forgotten one.
ANNOUNCE_AGAIN_MS = 6 * 3600 * 1000
_REMEMBERED_SHAPES = 500_000


@dataclass(frozen=True, slots=True)
class Stored:
    """The readings of one poll. `at_ms` is a UTC instant."""

    target_id: int
    at_ms: int
    readings: ReadingSet


class Writer:
    """Writes batches; remembers which shapes the database has. One per process, safe for threads."""

    def __init__(self, engine: Engine) -> None:
        self._engine = engine
        self._announced: dict[int, int] = {}  # shape id -> when

    def write(self, batch: Sequence[Stored], now_ms: int) -> None:
        """Store a batch in one transaction. A poll that is stored already is left as it is."""
        shapes = self._unannounced(batch, now_ms)
        rows = [
            (s.target_id, s.at_ms, s.readings.series.id, pack(s.readings.values)) for s in batch
        ]
        rows.sort(key=lambda row: row[:2])
        told = [
            _shape_row(shape, now_ms) for shape in shapes
        ]  # before the transaction: others wait for its end
        with sql.writing(self._engine) as conn:
            bulk.insert(conn, series_sets, told, _SEEN_AGAIN)
            bulk.insert(conn, readings, rows, "ON CONFLICT (target_id, at_ms) DO NOTHING")
        # Only now: a transaction that failed has stored no shape.
        self._remember(shapes, now_ms)

    def _unannounced(self, batch: Sequence[Stored], now_ms: int) -> list[SeriesSet]:
        oldest = now_ms - ANNOUNCE_AGAIN_MS
        shapes = {s.readings.series.id: s.readings.series for s in batch}
        return [shapes[key] for key in sorted(shapes) if self._announced.get(key, oldest) <= oldest]

    def _remember(self, shapes: Iterable[SeriesSet], now_ms: int) -> None:
        if len(self._announced) > _REMEMBERED_SHAPES:
            self._announced.clear()
        self._announced.update({shape.id: now_ms for shape in shapes})


def latest(engine: Engine, target_ids: Iterable[int]) -> dict[int, Stored]:
    """The newest readings of each of these targets; a target without any is missing."""
    with sql.reading(engine) as conn:
        rows = conn.execute(_LATEST, {"ids": list(target_ids)}).all()
        return {stored.target_id: stored for stored in _stored(conn, rows)}


def history(
    engine: Engine, target_ids: Iterable[int], polls: int, since_ms: int = 0
) -> dict[int, list[Stored]]:
    """The newest so many readings of each of these targets, oldest first; a target without any is missing.

    With `since_ms` only those from then on, and the one before them: a rate takes two.
    """
    values = {"ids": list(target_ids), "nth": polls - 1, "since": since_ms}
    with sql.reading(engine) as conn:
        stored = _stored(conn, conn.execute(_HISTORY, values).all())
    found: dict[int, list[Stored]] = {}
    for each in stored:
        found.setdefault(each.target_id, []).append(each)
    return found


def between(
    engine: Engine, target_id: int, start_ms: int, end_ms: int, limit: int = 10_000
) -> list[Stored]:
    """The readings of one target in [start, end), oldest first."""
    values = {"id": target_id, "start": start_ms, "end": end_ms, "limit": limit}
    with sql.reading(engine) as conn:
        return _stored(conn, conn.execute(_BETWEEN, values).all())


def _stored(conn: Connection, rows: Sequence[Any]) -> list[Stored]:
    shapes = _shapes(conn, {row[2] for row in rows})
    return [
        Stored(target_id, at_ms, ReadingSet(shapes[shape_id], unpack(blob)))
        for target_id, at_ms, shape_id, blob in rows
        if shape_id in shapes
    ]


def _shapes(conn: Connection, ids: Iterable[int]) -> dict[int, SeriesSet]:
    return {key: _parsed(text) for key, text in conn.execute(_SHAPES, {"ids": sorted(ids)})}


@lru_cache(maxsize=2048)
def _parsed(packed: bytes) -> SeriesSet:
    return SeriesSet.from_packed(packed)


def _shape_row(shape: SeriesSet, now_ms: int) -> tuple[int, bytes, int, int]:
    return (shape.id, shape.packed, len(shape.series), now_ms)


_SEEN_AGAIN = """ON CONFLICT (id) DO UPDATE SET seen_ms = excluded.seen_ms
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
    .where(among(targets.c.id, "ids"))
    .subquery()
)
_LATEST = sa.select(*_columns).join(
    _newest,
    sa.and_(readings.c.target_id == _newest.c.target_id, readings.c.at_ms == _newest.c.at_ms),
)

_of_target = sa.select(readings.c.at_ms).where(readings.c.target_id == targets.c.id)
_nth = (
    _of_target.order_by(readings.c.at_ms.desc())
    .limit(1)
    .offset(sa.bindparam("nth"))
    .scalar_subquery()
)
_before = (
    _of_target.where(readings.c.at_ms < sa.bindparam("since"))
    .order_by(readings.c.at_ms.desc())
    .limit(1)
    .scalar_subquery()
)
# Where to begin: a seek in the key for each, so that it costs what is read and not what is stored.
_begins = (
    sa.select(
        targets.c.id.label("target_id"),
        sa.func.coalesce(_nth, 0).label("nth"),
        sa.func.coalesce(_before, 0).label("before"),
    )
    .where(among(targets.c.id, "ids"))
    .subquery()
)
_HISTORY = (
    sa.select(*_columns)
    .join(
        _begins,
        sa.and_(
            readings.c.target_id == _begins.c.target_id,
            readings.c.at_ms >= _begins.c.nth,
            readings.c.at_ms >= _begins.c.before,
        ),
    )
    .order_by(readings.c.target_id, readings.c.at_ms)
)

_BETWEEN = (
    sa.select(*_columns)
    .where(
        readings.c.target_id == sa.bindparam("id"),
        readings.c.at_ms >= sa.bindparam("start"),
        readings.c.at_ms < sa.bindparam("end"),
    )
    .order_by(readings.c.at_ms)
    .limit(sa.bindparam("limit"))
)

_SHAPES = sa.select(series_sets.c.id, series_sets.c.series).where(among(series_sets.c.id, "ids"))
