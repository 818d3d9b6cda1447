"""The newest shapes of stored polls: which metrics and labels there are."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import series_sets
from poller.domain.metrics.reading import SeriesSet

#: Devices of one kind have shapes of the same metrics, so these are enough to know the names.
MOST_SHAPES = 1_000


def newest(engine: Engine, most: int = MOST_SHAPES) -> list[SeriesSet]:
    """Return the shapes that were announced last. Raises StoreError."""
    newest_first = series_sets.c.seen_ms.desc()
    query = sa.select(series_sets.c.series).order_by(newest_first, series_sets.c.id).limit(most)
    with sql.single_read(engine) as conn:
        return [SeriesSet.from_packed(packed) for packed in conn.execute(query).scalars()]
