"""The SQL engine of a process, safe for threads, on SQLite or PostgreSQL.

All access goes through `reading`, `single_read` and `writing`: they choose the transaction and
translate every driver error, so no caller sees an exception of SQLAlchemy.
"""

from __future__ import annotations

import os
import sqlite3
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from poller import errors
from poller.db.answer_limit import LimitedConnection, binary_rows
from poller.db.sql_errors import store_errors
from poller.db.sqlite_file import SqliteFile
from poller.db.write_turn import WriteTurns

BUSY_TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 60
#: For 16 task threads of a worker and a few of its own.
POOL_SIZE = 8
POOL_OVERFLOW = 24

_BEGIN = "poller_begin"
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
#: The turns of the writers of each SQLite engine.
_write_turns: weakref.WeakKeyDictionary[Engine, WriteTurns] = weakref.WeakKeyDictionary()
#: The file of each SQLite engine.
_files: weakref.WeakKeyDictionary[Engine, SqliteFile] = weakref.WeakKeyDictionary()


def create(url: str) -> Engine:
    """Make an engine for `sqlite:///path` or `postgresql://...`. No connection is opened yet."""
    parsed = _parse(url)
    if parsed.get_backend_name() == "sqlite":
        engine = _sqlite(parsed)
    else:
        engine = _postgresql(parsed)
    _engines.add(engine)
    return engine


def create_file(engine: Engine) -> None:
    """Make the empty file of a SQLite database, if there is none. Raises StoreUnavailable."""
    if engine in _files:
        _files[engine].create()


def check_file(engine: Engine) -> None:
    """Raise StoreUnavailable if the SQLite file is missing, or another one than it was."""
    if engine in _files:
        _files[engine].check()


def is_missing(engine: Engine) -> bool:
    """Whether the database is a SQLite file that does not exist."""
    return engine in _files and not os.path.exists(engine.url.database or "")


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """Open a read-only transaction in which all statements see the same snapshot."""
    options: dict[str, Any] = {}
    if engine.dialect.name == "postgresql":
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    check_file(engine)
    with store_errors(engine.url, "read"), binary_rows(), engine.connect() as conn:
        yield conn.execution_options(**options)


@contextmanager
def single_read(engine: Engine) -> Iterator[Connection]:
    """Open a connection for one SELECT, without the cost of a transaction on PostgreSQL."""
    check_file(engine)
    with store_errors(engine.url, "read"), binary_rows(), engine.connect() as conn:
        if engine.dialect.name == "postgresql":
            conn.execution_options(isolation_level="AUTOCOMMIT")
        yield conn


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """Open a transaction that may write: committed at the end, rolled back by any exception.

    On SQLite the transaction takes the write lock at its start, where waiting is safe; SQLite may
    refuse a reader that becomes a writer later, without waiting. Threads of one process queue for
    their turn and then get the connection that wrote last, whose page cache is still valid.
    The file is checked again after the commit: rows in a file that was deleted meanwhile are lost.
    """
    check_file(engine)
    with (
        store_errors(engine.url, "write"),
        binary_rows(),
        _turn_to_write(engine),
        engine.connect() as conn,
    ):
        conn.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        with conn.begin():
            yield conn
    check_file(engine)


@contextmanager
def _turn_to_write(engine: Engine) -> Iterator[None]:
    turns = _write_turns.get(engine)
    if turns is None:
        yield
        return
    turn = turns.take(BUSY_TIMEOUT_S)
    if turn is None:
        where = engine.url.render_as_string(hide_password=True)
        message = f"cannot use the database {where}"
        raise errors.StoreUnavailable(message, "another thread has been writing for long")
    try:
        yield
    finally:
        del turn  # also if a traceback keeps this frame


def _parse(url: str) -> URL:
    try:
        parsed = make_url(url)
    except sa.exc.ArgumentError:
        raise errors.InvalidSetting(
            "the database URL cannot be read",
            hint="write sqlite:////path/to/poller.db or postgresql://user@host/name",
        ) from None
    backend = parsed.get_backend_name()
    if backend in ("postgresql", "postgres"):
        return parsed.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise errors.InvalidSetting(
            f'the database "{backend}" is not supported',
            hint="use sqlite:///... or postgresql://...",
        )
    if parsed.database in (None, "", ":memory:"):
        raise errors.InvalidSetting(
            "an in-memory SQLite database cannot be shared by processes",
            hint="name a file: sqlite:////path/to/poller.db",
        )
    return parsed


def _sqlite(url: URL) -> Engine:
    engine = sa.create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        poolclass=sa.QueuePool,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_use_lifo=True,
        hide_parameters=True,
    )
    sa.event.listen(engine, "connect", _prepare_sqlite)
    sa.event.listen(engine, "begin", _begin_sqlite)
    _write_turns[engine] = WriteTurns()
    _files[engine] = file = SqliteFile(url.database or "")

    @sa.event.listens_for(engine, "do_connect")
    def _open(_dialect: Any, _record: Any, arguments: list[Any], options: dict[str, Any]) -> None:
        arguments[0] = file.uri
        options["uri"] = True

    return engine


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver sends BEGIN before the first write, not before the first read: `_begin_sqlite`
    # sends it.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    # A new file gives back free pages in small steps (sqlite_upkeep.py). Only an empty file can
    # learn that, before its first page is written.
    if cursor.execute("PRAGMA page_count").fetchone()[0] == 0:
        cursor.execute("PRAGMA auto_vacuum = INCREMENTAL")
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    # Debian's SQLite writes zeros over every page that becomes free: compaction would write each
    # poll a second time. FAST writes zeros where the page is written anyway.
    cursor.execute("PRAGMA secure_delete = FAST")
    cursor.execute("PRAGMA cache_size = -32768")
    cursor.close()


def _use_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """Switch the file to a write-ahead log, once: the file keeps the mode.

    While several processes try to switch, SQLite refuses without waiting; so this function waits.
    """
    deadline = time.monotonic() + BUSY_TIMEOUT_S
    while cursor.execute("PRAGMA journal_mode").fetchone()[0] != "wal":
        try:
            cursor.execute("PRAGMA journal_mode = WAL")
        except sqlite3.OperationalError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.01)


def _begin_sqlite(conn: Connection) -> None:
    conn.exec_driver_sql(conn.get_execution_options().get(_BEGIN, "BEGIN"))


def _postgresql(url: URL) -> Engine:
    arguments: dict[str, Any] = {
        "connect_timeout": CONNECT_TIMEOUT_S,
        "keepalives": 1,
        "keepalives_idle": 30,
        "keepalives_interval": 10,
        "keepalives_count": 3,
        "tcp_user_timeout": 30_000,
        "application_name": "poller",
        "options": (
            f"-c statement_timeout={STATEMENT_TIMEOUT_S}s "
            "-c idle_in_transaction_session_timeout=300s"
        ),
    }
    # The parameters of the operator's URL win.
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    engine = sa.create_engine(
        url,
        connect_args=arguments,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_recycle=1800,
        hide_parameters=True,
    )

    @sa.event.listens_for(engine, "do_connect")
    def _connect(_dialect: Any, _record: Any, words: list[Any], options: dict[str, Any]) -> Any:
        return LimitedConnection.connect(*words, **options)

    return engine


def _forget_inherited_connections() -> None:
    """In a forked child, drop the parent's connections without closing them."""
    for engine in list(_engines):
        engine.dispose(close=False)
        if engine in _write_turns:
            _write_turns[engine] = WriteTurns()


def _close_idle_files() -> None:
    """Before a fork, close SQLite's connections: a child that inherits them fails with "locking
    protocol".
    """
    for engine in list(_engines):
        if engine.dialect.name == "sqlite":
            engine.dispose()


os.register_at_fork(before=_close_idle_files, after_in_child=_forget_inherited_connections)
