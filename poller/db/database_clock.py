"""The clock of the database: the server's on PostgreSQL, the host's of the file on SQLite."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine
from sqlalchemy.ext.compiler import compiles
from sqlalchemy.sql.functions import FunctionElement

from poller.db import engine as sql


class PresentMs(FunctionElement[int]):
    """The present time in ms as a part of a statement, read when the statement gets there.

    PostgreSQL's `now()` would be the start of the transaction: too early after waiting for a lock.
    """

    name = "present_ms"
    type = sa.BigInteger()
    inherit_cache = True


@compiles(PresentMs, "postgresql")
def _postgresql(_element: PresentMs, _compiler: Any, **_options: Any) -> str:
    return "CAST(extract(epoch FROM clock_timestamp()) * 1000 AS bigint)"


@compiles(PresentMs)
def _sqlite(_element: PresentMs, _compiler: Any, **_options: Any) -> str:
    # 2440587.5 is the Julian day of 1 January 1970.
    return "CAST((julianday('now') - 2440587.5) * 86400000 AS INTEGER)"


def now_ms(engine: Engine) -> int:
    """Return the present time by the database, in ms. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return read_ms(conn)


def read_ms(conn: Connection) -> int:
    """Return the present time by the database, in ms, inside a transaction."""
    return int(conn.execute(_READ).scalar_one())


_READ = sa.select(PresentMs())
