"""Insert many rows by one statement with a constant text: the cheapest way into each backend.

PostgreSQL gets one binary array per column, parsed and planned once per connection. Measured at 64
rows of 1.3 kB: 0.5 ms of our CPU, against 3.0 ms as text and 1.3 ms as VALUES. SQLite gets an
`executemany`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from datetime import datetime
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql
from sqlalchemy.engine import Connection

from poller.db.tables import Instant

Rows = Sequence[tuple[Any, ...]]
Columns = tuple[str, ...]


def insert(
    conn: Connection,
    table: sa.Table[Any],
    rows: Rows,
    tail: str = "",
    columns: Columns | None = None,
) -> None:
    """Insert rows in the order of `columns` (default: the table's); `tail` is the ON CONFLICT
    clause.

    Rows must be sorted by key: writers that lock the same rows in the same order cannot deadlock.
    """
    if not rows:
        return
    names = columns or tuple(column.name for column in table.columns)
    if conn.dialect.name == "postgresql":
        arrays = [list(column) for column in zip(*rows, strict=True)]
        for position, adapt in _adapters(table, names, "postgresql"):
            arrays[position] = [adapt(value) for value in arrays[position]]
        conn.exec_driver_sql(_postgresql(table, tail, names), tuple(arrays))
    else:
        conn.exec_driver_sql(_sqlite(table, tail, names), _adapted(table, names, rows))


def _adapted(table: sa.Table[Any], names: Columns, rows: Rows) -> list[tuple[Any, ...]]:
    adapters = _adapters(table, names, "sqlite")
    if not adapters:
        return list(rows)
    changed = [list(row) for row in rows]
    for row in changed:
        for position, adapt in adapters:
            row[position] = adapt(row[position])
    return [tuple(row) for row in changed]


@cache
def _adapters(
    table: sa.Table[Any], names: Columns, dialect: str
) -> tuple[tuple[int, Callable[[Any], Any]], ...]:
    """Return converters for the columns whose values the bare driver does not accept."""
    found: list[tuple[int, Callable[[Any], Any]]] = []
    for position, name in enumerate(names):
        kind = table.c[name].type
        if isinstance(kind, sa.JSON):
            found.append((position, json.dumps))
        elif isinstance(kind, Instant) and dialect == "sqlite":
            found.append((position, _sqlite_instant))
    return tuple(found)


def _sqlite_instant(instant: datetime) -> str:
    """Format an instant as SQLAlchemy's DateTime does: UTC, without a zone."""
    return instant.replace(tzinfo=None).isoformat(" ", "microseconds")


@cache
def _postgresql(table: sa.Table[Any], tail: str, names: Columns) -> str:
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call]
    types = [table.c[name].type.compile(dialect=dialect) for name in names]
    # The order in which a column is sorted is no part of the type of an array.
    arrays = ", ".join(f"%b::{name.partition(' COLLATE ')[0]}[]" for name in types)
    return f"INSERT INTO {table.name} ({_quoted(names)}) SELECT * FROM unnest({arrays}) {tail}"  # noqa: S608


@cache
def _sqlite(table: sa.Table[Any], tail: str, names: Columns) -> str:
    marks = ", ".join("?" for _ in names)
    return f"INSERT INTO {table.name} ({_quoted(names)}) VALUES ({marks}) {tail}"  # noqa: S608


def _quoted(names: Columns) -> str:
    return ", ".join(f'"{name}"' for name in names)
