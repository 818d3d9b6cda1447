"""Removes plain rows that are past their retention: whole partitions, then the default one's rows.

PostgreSQL only.
"""

from __future__ import annotations

from datetime import UTC, datetime

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.history import partitions
from poller.db.history.plain_tables import history_rows

#: Rows and series that one run deletes at most.
ROWS = 20_000


def prune(engine: Engine, before_ms: int) -> int:
    """Remove plain rows of days that ended before an instant, and series of removed targets.

    Returns the number of partitions and rows. Does nothing on SQLite. Raises StoreError.
    """
    if engine.dialect.name != "postgresql":
        return 0
    dropped = partitions.drop_before(engine, history_rows, before_ms)
    day = datetime.fromtimestamp(partitions.day_begin(before_ms) / 1000, UTC)
    with sql.writing(engine) as conn:
        deleted = conn.execute(_OLD, {"before": day, "rows": ROWS}).rowcount
        conn.execute(_UNUSED, {"rows": ROWS})
    return dropped + deleted


_OLD = sa.text(
    "DELETE FROM history_rows_default WHERE (series_id, time) IN (SELECT series_id, time"
    " FROM history_rows_default WHERE time < :before LIMIT :rows)"
)
_UNUSED = sa.text(
    "DELETE FROM history_series WHERE id IN (SELECT id FROM history_series AS e"
    " WHERE NOT EXISTS (SELECT 1 FROM targets AS t WHERE t.id = e.target_id)"
    " AND NOT EXISTS (SELECT 1 FROM history_rows AS r WHERE r.series_id = e.id) LIMIT :rows)"
)
