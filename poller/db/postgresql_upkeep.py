"""Upkeep of our tables on PostgreSQL: statistics for the planner. The server itself vacuums."""

from __future__ import annotations

from collections.abc import Callable

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import metadata

#: From this version on another role than the owner may be allowed to.
_MAINTAIN_SINCE = (17,)


def analyze(engine: Engine, between: Callable[[], None]) -> tuple[int, list[str]]:
    """Renew the statistics of each table, but not of one that another session locks.

    Returns the number of tables, and the names of those that this role may not analyze: the server
    does that by itself now and then. A statement has the time limit of all others. Raises
    StoreError.
    """
    names = [table.name for table in metadata.sorted_tables]
    with sql.single_read(engine) as conn:
        allowed = _allowed(conn, names)
        for name in allowed:
            between()
            conn.exec_driver_sql(f'ANALYZE (SKIP_LOCKED) "{name}"')
    return len(allowed), sorted(set(names) - set(allowed))


def _allowed(conn: Connection, names: list[str]) -> list[str]:
    """The ones of these tables that this role owns or may maintain, in this order."""
    relation = sa.table("pg_class", sa.column("oid"), sa.column("relname"), sa.column("relowner"))
    may: sa.ColumnElement[bool] = sa.func.pg_has_role(relation.c.relowner, "USAGE")
    if (conn.dialect.server_version_info or ()) >= _MAINTAIN_SINCE:
        may = sa.or_(may, sa.func.has_table_privilege(relation.c.oid, "MAINTAIN"))
    visible = sa.func.pg_table_is_visible(relation.c.oid)
    query = sa.select(relation.c.relname).where(
        in_list(sa.cast(relation.c.relname, sa.Text), names), visible, may
    )
    found = set(conn.execute(query).scalars())
    return [name for name in names if name in found]
