"""Is the schema the one this program was written for, and how does it get there?

An upgrade is one transaction under one lock, so any number of processes may start it at once.
"""

from __future__ import annotations

from functools import cache
from importlib.resources import files
from typing import NamedTuple

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from alembic.runtime.migration import MigrationContext
from alembic.script import ScriptDirectory
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.failures import UPGRADE_HINT

#: Any constant will do, as long as it stays the same: all upgrades of one database queue up on it.
_ADVISORY_LOCK = 7_305_511_802


class Upgrade(NamedTuple):
    """Revisions before and after; `before` is None for an empty database."""

    before: str | None
    after: str


def head() -> str:
    """The revision this program needs."""
    found = _scripts().get_current_head()
    assert found is not None, "the package contains no migrations"
    return found


def current(engine: Engine) -> str | None:
    """The revision the database is at; None when it is empty."""
    with sql.reading(engine) as conn:
        return _revision(conn)


def check(engine: Engine) -> None:
    """Raise SchemaMismatch unless the database is exactly at `head()`."""
    found, needed = current(engine), head()
    if found == needed:
        return
    if found is None:
        raise errors.SchemaMismatch("the database has no tables yet", hint=UPGRADE_HINT)
    _refuse_newer(found)
    raise errors.SchemaMismatch(
        f"the database is at revision {found}, this program needs {needed}", hint=UPGRADE_HINT
    )


def upgrade(engine: Engine) -> Upgrade:
    """Bring the database to `head()`; idempotent, and safe when several processes do it at once."""
    with sql.writing(engine) as conn:
        _lock(conn)
        before = _revision(conn)
        _refuse_newer(before)
        if before != head():
            command.upgrade(_config(conn), "head")
        return Upgrade(before, head())


def _lock(conn: Connection) -> None:
    """On SQLite the transaction is the lock already."""
    if conn.dialect.name == "postgresql":
        conn.execute(sa.text("SET LOCAL statement_timeout = 0"))
        conn.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})


def _revision(conn: Connection) -> str | None:
    return MigrationContext.configure(conn).get_current_revision()


def _refuse_newer(found: str | None) -> None:
    if found is None or found in _known():
        return
    raise errors.SchemaMismatch(
        f"the database is at revision {found}, which this program does not know",
        cause=f"a newer poller has upgraded it; this one ends at {head()}",
        hint="install the newer poller on this machine too",
    )


@cache
def _known() -> frozenset[str]:
    return frozenset(script.revision for script in _scripts().walk_revisions())


@cache
def _scripts() -> ScriptDirectory:
    return ScriptDirectory.from_config(_config(None))


def _config(conn: Connection | None) -> Config:
    config = Config()
    config.set_main_option("script_location", str(files("poller.db") / "migrations").replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config
