"""Whatever SQLAlchemy raises leaves as one of ours, without passwords, statements or values."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import psycopg
import pytest
import sqlalchemy as sa
from sqlalchemy import exc
from sqlalchemy.engine import make_url

from poller import errors
from poller.db import engine as sql
from poller.db import sql_errors
from poller.db.inventory import inventory_feed

URL = make_url("postgresql+psycopg://u:hunter22@h/db")


def wrapped(
    original: Exception, kind: type[exc.DBAPIError] = exc.OperationalError
) -> exc.DBAPIError:
    return kind("INSERT INTO credentials VALUES (:envelope)", {"envelope": "v1:secret"}, original)


@pytest.mark.parametrize(
    ("error", "expected"),
    [
        (wrapped(psycopg.errors.UniqueViolation("x"), exc.IntegrityError), errors.StoreConflict),
        (wrapped(psycopg.errors.DeadlockDetected("x")), errors.StoreConflict),
        (wrapped(psycopg.errors.SerializationFailure("x")), errors.StoreConflict),
        (wrapped(psycopg.errors.QueryCanceled("x")), errors.StoreUnavailable),
        (wrapped(psycopg.errors.AdminShutdown("x")), errors.StoreUnavailable),
        (wrapped(psycopg.errors.TooManyConnections("x")), errors.StoreUnavailable),
        (wrapped(psycopg.errors.InvalidPassword("x")), errors.StoreUnavailable),
        (wrapped(psycopg.errors.UndefinedTable("x"), exc.ProgrammingError), errors.SchemaMismatch),
        (wrapped(psycopg.errors.UndefinedColumn("x"), exc.ProgrammingError), errors.SchemaMismatch),
        (wrapped(psycopg.errors.SyntaxError("x"), exc.ProgrammingError), errors.StoreError),
        (wrapped(psycopg.OperationalError("connection refused")), errors.StoreUnavailable),
        (wrapped(sqlite3.OperationalError("database is locked")), errors.StoreUnavailable),
        (wrapped(sqlite3.OperationalError("no such table: runs")), errors.SchemaMismatch),
        (
            wrapped(sqlite3.OperationalError("table runs has no column named x")),
            errors.SchemaMismatch,
        ),
        (
            wrapped(sqlite3.IntegrityError("UNIQUE constraint failed"), exc.IntegrityError),
            errors.StoreConflict,
        ),
        (
            wrapped(psycopg.DataError("PostgreSQL text fields cannot contain NUL (0x00) bytes")),
            errors.InvalidInput,
        ),
        (exc.TimeoutError("QueuePool limit reached"), errors.StoreUnavailable),
        (exc.InvalidRequestError("a bug"), errors.StoreError),
    ],
)
def test_the_table(error: exc.SQLAlchemyError, expected: type[errors.PollerError]) -> None:
    """One row per kind of trouble."""
    assert type(sql_errors.translate(error, URL)) is expected


def test_texts_contain_neither_password_nor_statement_nor_values() -> None:
    """Also when the driver repeats the password in its own message."""
    found = sql_errors.translate(
        wrapped(psycopg.OperationalError("password hunter22 refused")), URL
    )
    text = " ".join((str(found), found.hint))
    for secret in ("hunter22", "INSERT", "v1:secret"):
        assert secret not in text
    assert "u:***@h/db" in text


def test_a_server_that_is_away_is_named_without_its_password(free_port: int) -> None:
    """The real driver is refused by a port without a listener."""
    engine = sql.create(f"postgresql://u:hunter22@127.0.0.1:{free_port}/db")
    with pytest.raises(errors.StoreUnavailable) as caught:
        inventory_feed.version(engine)
    assert f"127.0.0.1:{free_port}" in caught.value.message
    assert "hunter22" not in repr(caught.value)
    assert "hunter22" not in repr(engine)


def test_a_directory_that_does_not_exist(tmp_path: object) -> None:
    """The file is named; nothing is made."""
    with pytest.raises(errors.StoreUnavailable, match=r"no database file .*/nowhere/poller.db"):
        inventory_feed.version(sql.create(f"sqlite:///{tmp_path}/nowhere/poller.db"))


def test_a_file_that_cannot_be_opened(tmp_path: Path) -> None:
    """SQLite's own sentence reaches the operator."""
    (tmp_path / "poller.db").mkdir()
    with pytest.raises(errors.StoreUnavailable, match="unable to open database file"):
        inventory_feed.version(sql.create(f"sqlite:///{tmp_path}/poller.db"))


@pytest.mark.parametrize(
    ("url", "reason"),
    [("sqlite://", "in-memory"), ("sqlite:///:memory:", "in-memory"), ("mysql://h/db", "mysql"),
     ("rubbish", "cannot be read")],
)  # fmt: skip
def test_urls_we_cannot_serve(url: str, reason: str) -> None:
    """Refused when the engine is made."""
    with pytest.raises(errors.InvalidSetting, match=reason):
        sql.create(url)


@pytest.mark.parametrize(
    "url", ["postgresql://h/db", "postgres://h/db", "postgresql+psycopg2://h/db"]
)
def test_postgresql_is_always_spoken_with_psycopg_3(url: str) -> None:
    """Whatever driver a copied URL names."""
    assert sql.create(url).url.drivername == "postgresql+psycopg"


def test_what_the_url_says_of_the_connection_wins() -> None:
    """An operator's own time-out is not overwritten."""
    engine = sql.create("postgresql://h/db?connect_timeout=1&options=-c%20statement_timeout%3D5s")
    arguments = engine.dialect.create_connect_args(engine.url)[1]
    assert arguments["connect_timeout"] == "1"
    assert arguments["options"] == "-c statement_timeout=5s"


def test_sqlite_is_set_up_for_many_processes(sqlite_url: str) -> None:
    """Write-ahead log, foreign keys, patience."""
    engine = sql.create(sqlite_url)
    sql.create_file(engine)
    with sql.reading(engine) as conn:
        pragmas = {name: conn.execute(sa.text(f"PRAGMA {name}")).scalar() for name in
                   ("journal_mode", "foreign_keys", "busy_timeout", "synchronous")}  # fmt: skip
    assert pragmas == {
        "journal_mode": "wal",
        "foreign_keys": 1,
        "busy_timeout": 10_000,
        "synchronous": 1,
    }


@pytest.mark.parametrize(
    ("server_says", "message", "hint"),
    [
        ('FATAL:  password authentication failed for user "u"', "login was refused", "password"),
        ("fe_sendauth: no password supplied", "login was refused", "password"),
        ('FATAL:  no pg_hba.conf entry for host "h", user "u"', "login was refused", "password"),
        ('FATAL:  role "u" does not exist', "login was refused", "user"),
        ('FATAL:  database "d" does not exist', "no such database", "create it"),
        ("permission denied for table runs", "may not do this", "grant"),
        ("connection refused", "cannot use the database", "check that it runs"),
    ],
)
def test_a_refusal_of_the_server_names_what_to_correct(
    server_says: str, message: str, hint: str
) -> None:
    """A server that refuses a login runs. The password is never repeated."""
    error = exc.OperationalError("x", {}, psycopg.OperationalError(server_says))
    found = sql_errors.translate(error, make_url("postgresql://u:hunter22@h/d"))
    assert isinstance(found, errors.StoreUnavailable)
    assert message in found.message
    assert hint in found.hint
    assert ("POLLER_DATABASE_URL" in found.hint) == (hint != "check that it runs")
    assert "hunter22" not in f"{found} {found.hint}"
