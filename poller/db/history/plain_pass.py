"""One pass over the targets: polls that came since the last pass get plain rows.

The roll-up of a day is made when the day is over and replaces the rows of that day, so this pass
need not look for results that come late. PostgreSQL only.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller import errors
from poller.db import bulk
from poller.db import engine as sql
from poller.db.history import plain_rows, rollups
from poller.db.history.plain_tables import history_rows_until
from poller.db.record import stored_readings
from poller.db.tables import targets
from poller.domain.batched import batched
from poller.domain.metrics.reading import Series

#: Targets of one transaction.
CHUNK = 20
#: Buckets before that of the newest known poll that are made again: results may come a little late.
AGAIN = 1
#: The furthest look back. The roll-up of an older day has made its rows.
FURTHEST_MS = 26 * 3_600_000
_STEP_MS = 300_000


class PlainPass(NamedTuple):
    """The rows that a pass wrote, whether it came to the end, and targets it could not read."""

    rows: int
    is_complete: bool
    damaged: Sequence[int]


class _Fresh(NamedTuple):
    """A target with polls that have no plain rows yet."""

    target_id: int
    seen_ms: int | None
    newest_ms: int


def refresh(
    engine: Engine,
    now_ms: int,
    selects: Callable[[Series], bool],
    rest: Callable[[float], None],
    until_mono: float,
) -> PlainPass:
    """Write plain rows of all polls since the last pass, or as many as the time allows.

    Idempotent. After each step the pass rests as long as the step took. Raises StoreError.
    """
    rows = 0
    damaged: list[int] = []
    shapes = _Shapes(engine, selects)
    for some in batched(_oldest_first(engine), CHUNK):
        if time.monotonic() >= until_mono:
            return PlainPass(rows, False, damaged)
        started_mono = time.monotonic()
        rows += _write(engine, shapes.fresh(dict(some)), now_ms, selects, damaged)
        rest(time.monotonic() - started_mono)
    return PlainPass(rows, True, damaged)


class _Shapes:
    """Finds targets with new polls whose shape has a selected series."""

    def __init__(self, engine: Engine, selects: Callable[[Series], bool]) -> None:
        self._engine = engine
        self._selects = selects
        self._wanted: dict[int, bool] = {}

    def fresh(self, seen_ms: dict[int, int | None]) -> list[_Fresh]:
        newest = stored_readings.latest_packed(self._engine, seen_ms)
        self._learn({poll.shape_id for poll in newest.values()} - self._wanted.keys())
        return [
            _Fresh(poll.target_id, seen_ms[poll.target_id], poll.at_ms)
            for poll in newest.values()
            if self._wanted[poll.shape_id] and poll.at_ms != seen_ms[poll.target_id]
        ]

    def _learn(self, shape_ids: set[int]) -> None:
        known = stored_readings.shapes(self._engine, shape_ids) if shape_ids else {}
        for shape_id in shape_ids:
            series = known[shape_id].series if shape_id in known else ()
            self._wanted[shape_id] = any(map(self._selects, series))


def _write(
    engine: Engine,
    fresh: Sequence[_Fresh],
    now_ms: int,
    selects: Callable[[Series], bool],
    damaged: list[int],
) -> int:
    from poller.domain.rollups.rollup import Buckets

    parts = []
    with sql.reading(engine) as conn:
        for each in fresh:
            start_ms = _start_ms(each, now_ms)
            count = max(1, -(-(now_ms - start_ms) // _STEP_MS))
            buckets = Buckets(start_ms, _STEP_MS, count)
            try:
                part = rollups.from_polls(conn, each.target_id, buckets, selects)
            except (errors.StoreUnavailable, errors.StoreConflict):
                raise
            except errors.StoreError:
                damaged.append(each.target_id)
                continue
            if part is not None:
                parts.append(rollups.plain_of(conn, each.target_id, part, selects))
    marks = sorted((each.target_id, each.newest_ms) for each in fresh)
    with sql.writing(engine) as conn:
        rows = plain_rows.replace(conn, parts)
        bulk.insert(conn, history_rows_until, marks, _SEEN)
    return rows


def _start_ms(fresh: _Fresh, now_ms: int) -> int:
    """Return the start of the first bucket that is made. A new target begins with today."""
    today_ms = now_ms - now_ms % 86_400_000
    seen_ms = today_ms if fresh.seen_ms is None else min(fresh.seen_ms, now_ms)
    start_ms = max(seen_ms - AGAIN * _STEP_MS, now_ms - FURTHEST_MS)
    return start_ms - start_ms % _STEP_MS


def _oldest_first(engine: Engine) -> list[tuple[int, int | None]]:
    """Return enabled targets and the newest poll of each that has rows; the oldest one first."""
    with sql.single_read(engine) as conn:
        return [(target_id, seen_ms) for target_id, seen_ms in conn.execute(_TARGETS)]


_SEEN = "ON CONFLICT (target_id) DO UPDATE SET seen_ms = excluded.seen_ms"
_TARGETS = (
    sa.select(targets.c.id, history_rows_until.c.seen_ms)
    .select_from(
        targets.outerjoin(history_rows_until, targets.c.id == history_rows_until.c.target_id)
    )
    .where(targets.c.enabled)
    .order_by(history_rows_until.c.seen_ms.nulls_first(), targets.c.id)
)
