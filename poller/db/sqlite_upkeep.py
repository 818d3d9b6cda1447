"""Upkeep of a SQLite file: statistics for the planner, free pages, the write-ahead log.

Each step holds the write lock for some milliseconds and rests as long as it worked, so that polls
get it. A file is never copied (`VACUUM`): that would lock it for as long as the copy takes.
"""

from __future__ import annotations

import sqlite3
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from sqlalchemy.engine import Engine

from poller import errors
from poller.db import engine as sql
from poller.db.tables import metadata

#: Rows of each index that ANALYZE looks at, about.
ANALYZED_ROWS = 400
#: Free pages that one step gives back.
PAGES = 100
#: Free pages up to this share of the file stay: new rows use them.
FREE_SHARE = 0.1
FEW_PAGES = 1_000
#: A longer write-ahead log is cut, if no reader uses it for a moment.
LOG_BYTES = 16 * 1024 * 1024
CUT_PATIENCE_MS = 100

_INCREMENTAL = 2

Rest = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class FileUpkeep:
    """The work of one night. Without `gives_back`, free pages stay in the file until a person
    copies it.
    """

    tables: int
    gives_back: bool
    pages: int
    freed_pages: int
    free_pages: int
    log_bytes: int


def analyze(engine: Engine, rest: Rest) -> int:
    """Renew the statistics of each table. Returns the number of tables. Raises StoreError."""
    for table in metadata.sorted_tables:
        started_mono = time.monotonic()
        with sql.writing(engine) as conn:
            conn.exec_driver_sql(f"PRAGMA analysis_limit = {ANALYZED_ROWS}")
            conn.exec_driver_sql(f'ANALYZE "{table.name}"')
        rest(time.monotonic() - started_mono)
    return len(metadata.sorted_tables)


def keep(engine: Engine, rest: Rest, until_mono: float) -> FileUpkeep:
    """Do all upkeep. Idempotent; safe beside workers. Raises StoreError."""
    tables = analyze(engine, rest)
    gives_back = _pragma(engine, "auto_vacuum") == _INCREMENTAL
    freed = _give_back(engine, rest, until_mono) if gives_back else 0
    log_bytes = checkpoint(engine)
    return FileUpkeep(
        tables=tables,
        gives_back=gives_back,
        pages=_pragma(engine, "page_count"),
        freed_pages=freed,
        free_pages=_pragma(engine, "freelist_count"),
        log_bytes=log_bytes,
    )


def _give_back(engine: Engine, rest: Rest, until_mono: float) -> int:
    """Cut free pages off the end of the file, except for a share. Returns how many."""
    first = free = _pragma(engine, "freelist_count")
    while time.monotonic() < until_mono:
        started_mono = time.monotonic()
        spare = free - _kept_pages(engine)
        if spare <= 0:
            break
        with sql.writing(engine) as conn:
            # Only `executescript` runs the statement to its end: others stop at its first row,
            # which has no columns. It begins a transaction of its own.
            connection: Any = conn.connection.driver_connection
            connection.executescript(f"PRAGMA incremental_vacuum({min(PAGES, spare)})")
        free = _pragma(engine, "freelist_count")
        rest(time.monotonic() - started_mono)
    return max(0, first - free)


def _kept_pages(engine: Engine) -> int:
    return max(FEW_PAGES, round(_pragma(engine, "page_count") * FREE_SHARE))


def checkpoint(engine: Engine) -> int:
    """Copy the write-ahead log into the file, as far as readers allow; no writer waits for that.

    A long log is cut afterwards. Returns its size in bytes. Raises StoreError.
    """
    sql.check_file(engine)
    try:
        connection = engine.raw_connection()
        try:
            return _checkpoint(connection.cursor())
        finally:
            connection.close()
    except sqlite3.Error as error:
        where = engine.url.render_as_string(hide_password=True)
        raise errors.StoreUnavailable(f"cannot use the database {where}", str(error)) from None


def _checkpoint(cursor: Any) -> int:
    page_bytes = int(cursor.execute("PRAGMA page_size").fetchone()[0])
    log_bytes = _log_pages(cursor, "PASSIVE") * page_bytes
    if log_bytes <= LOG_BYTES:
        return log_bytes
    try:
        cursor.execute(f"PRAGMA busy_timeout = {CUT_PATIENCE_MS}")
        return _log_pages(cursor, "TRUNCATE") * page_bytes
    finally:
        cursor.execute(f"PRAGMA busy_timeout = {sql.BUSY_TIMEOUT_S * 1000}")


def _log_pages(cursor: Any, mode: str) -> int:
    _, pages, _ = cursor.execute(f"PRAGMA wal_checkpoint({mode})").fetchone()
    return max(0, int(pages))


def _pragma(engine: Engine, name: str) -> int:
    with sql.single_read(engine) as conn:
        return int(conn.exec_driver_sql(f"PRAGMA {name}").scalar_one())
