"""Tables of plain rows, which SQL reads through the view `poller_series`: PostgreSQL only."""

from __future__ import annotations

from sqlalchemy import BigInteger, Column, Float, Integer, MetaData, String, Table
from sqlalchemy.dialects.postgresql import DOUBLE_PRECISION, JSONB

from poller.db.tables import Instant

#: Apart from the tables of both databases: SQLite has none of these.
metadata = MetaData()

#: Series that have plain rows. `known_by` identifies one, `labels` are those of its newest poll.
history_series = Table(
    "history_series",
    metadata,
    Column("id", BigInteger, primary_key=True),
    Column("target_id", BigInteger, nullable=False),
    Column("metric", String, nullable=False),
    Column("known_by", JSONB, nullable=False),
    Column("labels", JSONB, nullable=False),
    Column("kind", String, nullable=False),  # counter, gauge or state
)

_Double = Float().with_variant(DOUBLE_PRECISION(), "postgresql")

#: Buckets of 5 minutes, one row per series and bucket with a value. Partitioned by UTC day.
history_rows = Table(
    "history_rows",
    metadata,
    Column("series_id", BigInteger, primary_key=True, autoincrement=False),
    Column("time", Instant, primary_key=True),  # start of the bucket
    Column("value", _Double, nullable=False),
    Column("low", _Double, nullable=False),
    Column("high", _Double, nullable=False),
    Column("known_ms", Integer, nullable=False),
    Column("averaged_ms", Integer, nullable=False),
)

#: The newest poll of each target that is in plain rows.
history_rows_until = Table(
    "history_rows_until",
    metadata,
    Column("target_id", BigInteger, primary_key=True, autoincrement=False),
    Column("seen_ms", BigInteger, nullable=False),
)
