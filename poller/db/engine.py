"""How do we talk to SQL? One engine per process, safe for many threads, on SQLite or PostgreSQL.

`reading` and `writing` are the only ways in: they choose the right transaction and translate every
driver error, so nobody above this package sees SQLAlchemy.
"""

from __future__ import annotations

import os
import sqlite3
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import URL, Connection, Engine, make_url

from poller import errors
from poller.db.sql_errors import store_errors

BUSY_TIMEOUT_S = 10
CONNECT_TIMEOUT_S = 5
STATEMENT_TIMEOUT_S = 60
#: 16 task threads per worker, and a few for the house.
POOL_SIZE = 8
POOL_OVERFLOW = 24

_BEGIN = "poller_begin"
_engines: weakref.WeakSet[Engine] = weakref.WeakSet()
_turns: weakref.WeakKeyDictionary[Engine, threading.Lock] = (
    weakref.WeakKeyDictionary()
)  # of SQLite's writers


def create(url: str) -> Engine:
    """An engine for `sqlite:///path` or `postgresql://...`; opens no connection yet."""
    parsed = _parse(url)
    made = _sqlite(parsed) if parsed.get_backend_name() == "sqlite" else _postgresql(parsed)
    _engines.add(made)
    return made


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A read-only transaction in which every statement sees the same instant."""
    options: dict[str, Any] = {}
    if engine.dialect.name == "postgresql":
        options = {"isolation_level": "REPEATABLE READ", "postgresql_readonly": True}
    with store_errors(engine.url), engine.connect() as conn:
        yield conn.execution_options(**options)


@contextmanager
def peeking(engine: Engine) -> Iterator[Connection]:
    """For one single statement: as `reading`, without the cost of a transaction on PostgreSQL."""
    with store_errors(engine.url), engine.connect() as conn:
        if engine.dialect.name == "postgresql":
            conn.execution_options(isolation_level="AUTOCOMMIT")
        yield conn


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that may write: committed at the end, rolled back by any exception.

    On SQLite it takes the write lock at once: waiting for it at the start is safe, whereas a reader
    that wants to become a writer halfway can be refused without a wait. Threads of one process queue
    for it in line, and then find the connection that wrote last, whose cache is still true.
    """
    with store_errors(engine.url), _turn(engine), engine.connect() as conn:
        conn.execution_options(**{_BEGIN: "BEGIN IMMEDIATE"})
        with conn.begin():
            yield conn


@contextmanager
def _turn(engine: Engine) -> Iterator[None]:
    lock = _turns.get(engine)
    if lock is None:
        yield
    elif not lock.acquire(timeout=BUSY_TIMEOUT_S):
        where = engine.url.render_as_string(hide_password=True)
        raise errors.StoreUnavailable(
            f"cannot use the database {where}", "another thread has been writing for long"
        )
    else:
        try:
            yield
        finally:
            lock.release()


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
    made = sa.create_engine(
        url,
        connect_args={"timeout": BUSY_TIMEOUT_S, "check_same_thread": False},
        poolclass=sa.QueuePool,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_use_lifo=True,
        hide_parameters=True,
    )
    sa.event.listen(made, "connect", _prepare_sqlite)
    sa.event.listen(made, "begin", _begin_sqlite)
    _turns[made] = threading.Lock()
    return made


def _prepare_sqlite(connection: sqlite3.Connection, _record: object) -> None:
    # The driver's own BEGIN comes too late (before the first write, not the first read): we send ours.
    connection.isolation_level = None
    cursor = connection.cursor()
    cursor.execute(f"PRAGMA busy_timeout = {BUSY_TIMEOUT_S * 1000}")
    _use_write_ahead_log(cursor)
    cursor.execute("PRAGMA synchronous = NORMAL")
    cursor.execute("PRAGMA foreign_keys = ON")
    cursor.execute("PRAGMA cache_size = -32768")
    cursor.close()


def _use_write_ahead_log(cursor: sqlite3.Cursor) -> None:
    """The file remembers the mode. While several processes try to set it first, SQLite refuses without waiting."""
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
        "options": f"-c statement_timeout={STATEMENT_TIMEOUT_S}s -c idle_in_transaction_session_timeout=300s",
    }
    # What the operator wrote in the URL wins.
    arguments = {name: value for name, value in arguments.items() if name not in url.query}
    return sa.create_engine(
        url,
        connect_args=arguments,
        pool_pre_ping=True,
        pool_size=POOL_SIZE,
        max_overflow=POOL_OVERFLOW,
        pool_recycle=1800,
        hide_parameters=True,
    )


def _forget_inherited_connections() -> None:
    """A forked child must not speak on its parent's sockets, nor close them."""
    for engine in list(_engines):
        engine.dispose(close=False)
        if engine in _turns:
            _turns[engine] = threading.Lock()


def _close_idle_files() -> None:
    """SQLite's own state must not cross a fork: a child that inherits it fails with "locking protocol"."""
    for engine in list(_engines):
        if engine.dialect.name == "sqlite":
            engine.dispose()


os.register_at_fork(before=_close_idle_files, after_in_child=_forget_inherited_connections)
