"""The clock of the database: the server's on PostgreSQL, the host's of the file on SQLite."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql

_POSTGRESQL = sa.text("SELECT CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)")
#: 2440587.5 is the Julian day of 1 January 1970.
_SQLITE = sa.text("SELECT CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)")


def now_ms(engine: Engine) -> int:
    """Return the present time by the database, in ms. Raises StoreError."""
    query = _POSTGRESQL if engine.dialect.name == "postgresql" else _SQLITE
    with sql.single_read(engine) as conn:
        return int(conn.execute(query).scalar_one())
