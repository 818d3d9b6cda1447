"""Partitions of the history tables on PostgreSQL: made before they are needed, dropped when old.

A row without a partition goes to the default one, so nothing waits for this module. A role that
does not own the tables makes none; rows are then deleted one by one.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.history.plain_tables import history_rows
from poller.db.tables import history_1h, history_5m, history_blocks, readings

DAY_MS = 86_400_000
#: Days and months that are made ahead.
AHEAD_MS = 2 * DAY_MS
#: Days that are made for polls which wait in `readings`, at most.
MOST_BEHIND_MS = 60 * DAY_MS
#: A statement that gets no lock within this time is tried again in the next run.
LOCK_TIMEOUT = "2s"


class Partition(NamedTuple):
    """Rows of a table whose start is in [begin, end)."""

    table: str
    name: str
    begin_ms: int
    end_ms: int


def day_begin(at_ms: int) -> int:
    """The start of the UTC day of an instant."""
    return at_ms - at_ms % DAY_MS


def month_begin(at_ms: int) -> int:
    """The start of the UTC month of an instant."""
    month = datetime.fromtimestamp(at_ms / 1000, UTC).replace(day=1)
    return day_begin(round(month.timestamp() * 1000))


def begin_of(table: sa.Table[Any], at_ms: int) -> int:
    """The start of the span that one partition of a table holds."""
    return day_begin(at_ms) if table is history_blocks else month_begin(at_ms)


def prepare(engine: Engine, now_ms: int) -> int:
    """Make the partitions of the next days, and those of polls that wait. Returns their number.

    Does nothing on SQLite. Raises StoreError.
    """
    if engine.dialect.name != "postgresql":
        return 0
    with sql.single_read(engine) as conn:
        if not conn.execute(sa.text(_MAY_MAKE)).scalar():
            return 0
        oldest_ms = conn.execute(sa.select(sa.func.min(readings.c.at_ms))).scalar()
        known = {partition.name for partition in _existing(conn)}
    since_ms = max(now_ms - MOST_BEHIND_MS, min(now_ms, now_ms if oldest_ms is None else oldest_ms))
    made = 0
    for partition in _needed(since_ms, now_ms + AHEAD_MS):
        if partition.name not in known:
            made += _try(engine, _create(partition))
    return made


def drop_before(engine: Engine, table: sa.Table[Any], before_ms: int) -> int:
    """Drop the partitions of a table that end before an instant. Returns their number.

    A partition that is in use now is left to the next run. Raises StoreError.
    """
    if engine.dialect.name != "postgresql":
        return 0
    with sql.single_read(engine) as conn:
        existing = _existing(conn)
    dropped = 0
    for partition in existing:
        if partition.table == table.name and partition.end_ms <= before_ms:
            dropped += _try(engine, f'DROP TABLE "{partition.name}"')
    return dropped


def _needed(since_ms: int, until_ms: int) -> Iterator[Partition]:
    for begin_ms in range(day_begin(since_ms), until_ms, DAY_MS):
        day = datetime.fromtimestamp(begin_ms / 1000, UTC)
        for table in (history_blocks, history_rows):
            name = f"{table.name}_p{day:%Y%m%d}"
            yield Partition(table.name, name, begin_ms, begin_ms + DAY_MS)
    begin_ms = month_begin(since_ms)
    while begin_ms < until_ms:
        end_ms = month_begin(begin_ms + 32 * DAY_MS)
        month = datetime.fromtimestamp(begin_ms / 1000, UTC)
        for table in (history_5m, history_1h):
            yield Partition(table.name, f"{table.name}_p{month:%Y%m}", begin_ms, end_ms)
        begin_ms = end_ms


def _existing(conn: Connection) -> list[Partition]:
    """The partitions that this role may drop, oldest first. The default ones are not among them."""
    rows = conn.execute(sa.text(_EXISTING))
    found = [Partition(row.parent, row.name, int(row.begin_ms), int(row.end_ms)) for row in rows]
    return sorted(found, key=lambda partition: partition.begin_ms)


def _create(partition: Partition) -> str:
    begin, end = str(partition.begin_ms), str(partition.end_ms)
    if partition.table == history_rows.name:
        begin, end = _instant(partition.begin_ms), _instant(partition.end_ms)
    bounds = f"FROM ({begin}) TO ({end})"
    return (
        f'CREATE TABLE IF NOT EXISTS "{partition.name}" '
        f'PARTITION OF "{partition.table}" FOR VALUES {bounds}'
    )


def _instant(at_ms: int) -> str:
    """Return an instant as PostgreSQL reads it, whatever the time zone of the session."""
    return f"'{datetime.fromtimestamp(at_ms / 1000, UTC).isoformat()}'"


def _try(engine: Engine, statement: str) -> bool:
    """Run a statement that needs a strong lock. False if it was not to be had, or if the default
    partition has rows of a new one.
    """
    try:
        with sql.writing(engine) as conn:
            conn.exec_driver_sql(f"SET LOCAL lock_timeout = '{LOCK_TIMEOUT}'")
            conn.exec_driver_sql(statement)
    except (errors.StoreUnavailable, errors.StoreConflict):
        return False
    return True


_TABLES = "ARRAY['history_blocks', 'history_5m', 'history_1h', 'history_rows']::regclass[]"
_MAY_MAKE = f"""SELECT bool_and(pg_has_role(relowner, 'USAGE'))
    AND has_schema_privilege(current_schema(), 'CREATE')
    FROM pg_class WHERE oid = ANY ({_TABLES})
"""  # noqa: S608
#: Bounds are whole milliseconds, or instants in quotes, which are text to this query.
_EXISTING = rf"""SELECT parent.relname AS parent, child.relname AS name,
    CASE WHEN bounds[1] ~ '^-?\d+$' THEN bounds[1]::bigint
        ELSE round(extract(epoch FROM bounds[1]::timestamptz) * 1000)::bigint END AS begin_ms,
    CASE WHEN bounds[2] ~ '^-?\d+$' THEN bounds[2]::bigint
        ELSE round(extract(epoch FROM bounds[2]::timestamptz) * 1000)::bigint END AS end_ms
    FROM pg_inherits
    JOIN pg_class AS parent ON parent.oid = inhparent
    JOIN pg_class AS child ON child.oid = inhrelid,
    regexp_match(pg_get_expr(child.relpartbound, child.oid),
        'FROM \(''?([^'')]+)''?\) TO \(''?([^'')]+)''?\)') AS bounds
    WHERE inhparent = ANY ({_TABLES})
    AND bounds IS NOT NULL AND pg_has_role(child.relowner, 'USAGE')
"""  # noqa: S608
