"""The roll-ups of a span: stored days, and those not rolled up yet, from their polls."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Protocol

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.history import polls_of_span, rollups
from poller.db.tables import history_1h, history_5m
from poller.domain.metrics.reading import Series
from poller.domain.rollups.touched_days import DAY_MS, day_of

if TYPE_CHECKING:
    from poller.domain.rollups.rollup import Rollup
    from poller.domain.rollups.sample_columns import SeriesRef

#: Later than every day.
_ANY_MS = 2**62
_TABLES = {300_000: history_5m, 3_600_000: history_1h}


class ChosenSeries(Protocol):
    """Which series of stored rows are read."""

    def learn(self, conn: Connection, shape_ids: Collection[int]) -> None:
        """Read the shapes that series are named by, before the first call of `wants`."""

    def wants(self, ref: SeriesRef) -> bool:
        """Whether a series is read."""

    def selects(self, series: Series) -> bool:
        """Whether a series is read, by its name and labels."""


def between(
    engine: Engine,
    target_id: int,
    step_ms: int,
    start_ms: int,
    end_ms: int,
    chosen: ChosenSeries | None = None,
) -> list[Rollup]:
    """Return the roll-ups of the days that [start, end) touches, oldest first. Stored days that
    follow each other and have the same series are one roll-up.

    `step_ms` is 300,000 or 3,600,000. Only the chosen series are read; a day without a stored row,
    as today, is rolled up here. Raises StoreError.
    """
    with sql.reading(engine) as conn:
        stored = _stored(conn, target_id, step_ms, start_ms, end_ms)
        found = _decoded(conn, target_id, stored, chosen)
        missing_ms = stored[-1][0] + DAY_MS if stored else day_of(start_ms)
        first_ms = _first_day(conn, target_id, missing_ms) if missing_ms < end_ms else end_ms
        for day_ms in range(first_ms, end_ms, DAY_MS):
            fresh = _fresh(conn, target_id, step_ms, day_ms, chosen)
            if fresh is not None:
                found.append(fresh)
    return found


def _stored(
    conn: Connection, target_id: int, step_ms: int, start_ms: int, end_ms: int
) -> list[tuple[int, bytes]]:
    table = _TABLES[step_ms]
    rows = conn.execute(
        sa.select(table.c.start_ms, table.c.data)
        .where(
            table.c.target_id == target_id,
            table.c.start_ms >= day_of(start_ms),
            table.c.start_ms < end_ms,
        )
        .order_by(table.c.start_ms)
    )
    return [(day_ms, bytes(data)) for day_ms, data in rows]


def _decoded(
    conn: Connection,
    target_id: int,
    stored: Sequence[tuple[int, bytes]],
    chosen: ChosenSeries | None,
) -> list[Rollup]:
    from poller.domain.rollups import rollup_codec

    rows = [data for _, data in stored]
    try:
        if chosen is None:
            return list(rollup_codec.decode_all(rows))
        chosen.learn(conn, rollup_codec.shape_ids(rows))
        return list(rollup_codec.decode_all(rows, chosen.wants))
    except rollup_codec.RollupError:
        for day_ms, data in stored:
            _check(target_id, day_ms, data)
        raise


def _check(target_id: int, day_ms: int, data: bytes) -> None:
    """Raise StoreError if a row is damaged."""
    from poller.domain.rollups import rollup_codec

    try:
        rollup_codec.decode(data)
    except rollup_codec.RollupError as error:
        message = f"the roll-up of target {target_id} from {day_ms} on cannot be read"
        hint = "restore the row of history_5m or history_1h from a backup, or delete it"
        raise errors.StoreError(message, str(error), hint) from None


def _first_day(conn: Connection, target_id: int, since_ms: int) -> int:
    """Return the first day from `since_ms` on that polls may say something about."""
    oldest_ms = polls_of_span.oldest(conn, target_id)
    return _ANY_MS if oldest_ms is None else max(since_ms, day_of(oldest_ms))


def _fresh(
    conn: Connection, target_id: int, step_ms: int, day_ms: int, chosen: ChosenSeries | None
) -> Rollup | None:
    from poller.domain.rollups import rollup

    buckets = rollup.of_day(day_ms, rollup.FIVE_MINUTES_MS)
    selects = None if chosen is None else chosen.selects
    fine = rollups.from_polls(conn, target_id, buckets, selects)
    if fine is None or step_ms == buckets.step_ms:
        return fine
    return rollup.coarser(fine, step_ms // buckets.step_ms)
