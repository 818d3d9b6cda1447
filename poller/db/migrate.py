"""Upgrade the database to the schema of this program.

An upgrade is one transaction under one lock, so any number of processes may start it at once.
"""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

import sqlalchemy as sa
from alembic import command
from alembic.config import Config
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db import revision
from poller.db.alerts.rules import owned_rules
from poller.db.revision import check, current

#: All upgrades of one database queue up on this constant.
_ADVISORY_LOCK = 7_305_511_802

__all__ = ["Upgrade", "check", "current", "head", "script_config", "upgrade"]


class Upgrade(NamedTuple):
    """Revisions before and after; `before` is None for an empty database."""

    before: str | None
    after: str


def head() -> str:
    """Return the revision that this program needs."""
    return revision.HEAD


def upgrade(engine: Engine) -> Upgrade:
    """Bring the database to `head()`. Idempotent, and safe when several processes do it at once."""
    sql.create_file(engine)
    with sql.writing(engine) as conn:
        _lock(conn)
        before = revision.current_in(conn)
        revision.refuse_newer(before)
        if before != head():
            command.upgrade(script_config(conn), head())
        owned_rules.install_builtin(conn)
        return Upgrade(before, head())


def script_config(conn: Connection | None = None) -> Config:
    """Return Alembic's configuration, made without an ini file."""
    config = Config()
    folder = str(files("poller.db") / "migrations")
    config.set_main_option("script_location", folder.replace("%", "%%"))
    config.set_main_option("path_separator", "os")
    config.attributes["connection"] = conn
    return config


def _lock(conn: Connection) -> None:
    """Lock the database for an upgrade. On SQLite the open transaction is the lock."""
    if conn.dialect.name == "postgresql":
        conn.execute(sa.text("SET LOCAL statement_timeout = 0"))
        conn.execute(sa.text("SELECT pg_advisory_xact_lock(:key)"), {"key": _ADVISORY_LOCK})
