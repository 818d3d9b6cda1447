"""The revision of the database, compared with the one this program needs.

This module imports no Alembic, so every command can afford the check.
"""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.sql_errors import UPGRADE_HINT

#: The last revision of `migrations/versions`. Revisions have four digits, so they can be compared.
HEAD = "0017"


def current(engine: Engine) -> str | None:
    """Return the revision of the database, or None when it has no tables yet."""
    with sql.reading(engine) as conn:
        return current_in(conn)


def current_in(conn: Connection) -> str | None:
    if not sa.inspect(conn).has_table("alembic_version"):
        return None
    found = conn.execute(sa.text("SELECT version_num FROM alembic_version")).scalar()
    return None if found is None else str(found)


def check(engine: Engine, needed: str = HEAD) -> None:
    """Raise SchemaMismatch unless the database is exactly at the needed revision."""
    found = current(engine)
    if found == needed:
        return
    if found is None:
        raise errors.SchemaMismatch("the database has no tables yet", hint=UPGRADE_HINT)
    refuse_newer(found, needed)
    raise errors.SchemaMismatch(
        f"the database is at revision {found}, this program needs {needed}", hint=UPGRADE_HINT
    )


def refuse_newer(found: str | None, needed: str = HEAD) -> None:
    if found is None or found <= needed:
        return
    raise errors.SchemaMismatch(
        f"the database is at revision {found}, which this program does not know",
        cause=f"a newer poller has upgraded it; this one ends at {needed}",
        hint="install the newer poller on this machine too",
    )
