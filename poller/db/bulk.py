"""Many rows, one statement with one fixed text: the cheapest way into each backend.

PostgreSQL gets one array per column (parsed and planned once per connection), SQLite an `executemany`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

Rows = Sequence[tuple[Any, ...]]


def insert(conn: Connection, table: sa.Table[Any], rows: Rows, tail: str = "") -> None:
    """Insert rows given in the table's column order; `tail` is what to do on conflict.

    Give rows sorted by key: two writers that lock the same rows in the same order cannot deadlock.
    """
    if not rows:
        return
    if conn.dialect.name == "postgresql":
        columns = tuple(list(column) for column in zip(*rows, strict=True))
        conn.exec_driver_sql(_postgresql(table, tail), columns)
    else:
        conn.exec_driver_sql(_sqlite(table, tail), list(rows))


@cache
def _postgresql(table: sa.Table[Any], tail: str) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    arrays = ", ".join(f"%s::{column.type.compile(dialect=dialect)}[]" for column in table.columns)
    return f"INSERT INTO {table.name} ({_names(table)}) SELECT * FROM unnest({arrays}) {tail}"  # noqa: S608


@cache
def _sqlite(table: sa.Table[Any], tail: str) -> str:
    marks = ", ".join("?" for _ in table.columns)
    return f"INSERT INTO {table.name} ({_names(table)}) VALUES ({marks}) {tail}"  # noqa: S608


def _names(table: sa.Table[Any]) -> str:
    return ", ".join(f'"{column.name}"' for column in table.columns)
