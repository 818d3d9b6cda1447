"""Every exception of every client library is in one table; a new one fails a test."""

from __future__ import annotations

import inspect
import sqlite3
from collections.abc import Mapping
from typing import Any

import kombu.exceptions
import psycopg.errors
import pytest
import redis
from cryptography.exceptions import UnsupportedAlgorithm

from poller import errors
from poller.collectors.http import http_request as http
from poller.collectors.routeros import librouteros_errors as routeros
from poller.collectors.snmp.engines import gufo_engine
from poller.db import sql_errors as sql
from poller.security import vault
from poller.settings import setting_errors
from poller.state import publish_errors
from poller.state import redis_errors as redis_failures
from poller.traps import trap_message
from tests.unit.library_exceptions import defined_by

Table = Mapping[Any, type[errors.PollerError]]

#: Package, its parts that are never called, other modules its exceptions name, and our table.
LIBRARIES: list[tuple[str, tuple[str, ...], tuple[str, ...], Table]] = [
    ("gufo.snmp", (), ("_fast",), gufo_engine._TRANSLATION),
    ("librouteros", (), (), routeros._TRANSLATION),
    ("h11", (), (), http.TRANSLATION),
    (
        "redis",
        (
            "redis.asyncio",
            "redis.auth",
            "redis.event",
            "redis.http",
            "redis.multidb",
            "redis.sentinel",
        ),
        (),
        redis_failures.TRANSLATION,
    ),
    (
        "kombu",
        ("kombu.asynchronous", "kombu.matcher", "kombu.transport"),
        (),
        publish_errors.TRANSLATION,
    ),
    (
        "sqlalchemy",
        (
            "sqlalchemy.connectors",
            "sqlalchemy.ext",
            "sqlalchemy.orm",
            "sqlalchemy.testing",
            "sqlalchemy.util",
        ),
        (),
        sql.CLASSES,
    ),
    ("cryptography.exceptions", (), (), vault.TRANSLATION),
    (
        "pydantic",
        ("pydantic.v1", "pydantic._internal", "pydantic.mypy"),
        (),
        setting_errors.TRANSLATION,
    ),
    ("pydantic_core", (), (), setting_errors.TRANSLATION),
    ("pydantic_settings", (), (), setting_errors.TRANSLATION),
]
ROWS = [
    (kind, table)
    for name, besides, also, table in LIBRARIES
    for kind in defined_by(name, besides, also)
]


@pytest.mark.parametrize(
    ("exception", "table"), ROWS, ids=[f"{k.__module__}.{k.__name__}" for k, _ in ROWS]
)
def test_an_exception_is_in_the_table_itself(exception: type[BaseException], table: Table) -> None:
    """The entry of a base class is not enough: each class needs a decision."""
    assert exception in table
    assert issubclass(table[exception], errors.PollerError)


@pytest.mark.parametrize("package", ["pyasn1", "pysnmp.error"])
def test_a_trap_survives_every_exception_of_its_codec(package: str) -> None:
    """A datagram can make the libraries raise any of these: all of them mean a malformed trap."""
    kinds = defined_by(package)
    assert [kind for kind in kinds if not issubclass(kind, trap_message.CODEC_ERRORS)] == []


@pytest.mark.parametrize("module", [psycopg.errors, sqlite3], ids=["psycopg", "sqlite3"])
def test_every_error_of_a_database_driver_is_in_a_table(module: Any) -> None:
    """The key is the class of the SQLSTATE, or the class name that all drivers share."""
    kinds = [
        kind
        for _, kind in inspect.getmembers(module, inspect.isclass)
        if issubclass(kind, Exception)
    ]
    public = [
        kind
        for kind in kinds
        if not kind.__name__.startswith("_") and kind.__module__ != "builtins"
    ]
    states = {kind: getattr(kind, "sqlstate", None) for kind in public}
    unmapped = [
        kind.__name__
        for kind, state in states.items()
        if (state[:2] not in sql.SQLSTATES if state else kind.__name__ not in sql.DRIVERS)
    ]
    assert unmapped == []
    assert len(public) >= 9


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (redis.ConnectionError("refused"), errors.StoreUnavailable),
        (redis.TimeoutError("slow"), errors.StoreUnavailable),
        (redis.exceptions.OutOfMemoryError("full"), errors.StoreUnavailable),
        (redis.exceptions.ReadOnlyError("a replica"), errors.StoreUnavailable),
        (redis.ResponseError("BUSY Redis is busy running a script"), errors.StoreUnavailable),
        (redis.ResponseError("WRONGTYPE Operation against a key"), errors.StoreError),
        (redis.DataError("a bug"), errors.StoreError),
        (redis.WatchError("changed"), errors.StoreConflict),
        (
            type("NewError", (redis.ResponseError,), {})("what a later version adds"),
            errors.StoreError,
        ),
    ],
)
def test_redis_kinds(error: Exception, kind: type[errors.StoreError]) -> None:
    """A Redis error is transient, or it is final."""
    found = redis_failures.translate(error, "10.0.0.1:6379/0")
    assert type(found) is kind
    assert str(error) in str(found)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (kombu.exceptions.OperationalError("connection refused"), errors.StoreUnavailable),
        (kombu.exceptions.EncodeError("an object in a message"), errors.Bug),
        (redis.ConnectionError("refused"), errors.StoreUnavailable),
        (ConnectionResetError("by peer"), errors.StoreUnavailable),
    ],
)
def test_broker_kinds(error: Exception, kind: type[errors.PollerError]) -> None:
    """Each error of publishing becomes an error of the tree."""
    with pytest.raises(kind) as caught, publish_errors.broker_errors():
        raise error
    assert type(caught.value) is kind
    assert caught.value.__cause__ is error


def test_a_library_without_the_cipher_is_no_bug(monkeypatch: pytest.MonkeyPatch) -> None:
    """The message names the credential and quotes no secret."""
    ring = vault.Keyring([bytes(range(32))])
    sealed = ring.seal("hunter22", "core", "login")

    class Broken:
        def decrypt(self, *_: object) -> bytes:
            raise UnsupportedAlgorithm("hunter22")

    monkeypatch.setattr(ring, "_ciphers", dict.fromkeys(ring.ids, Broken()))
    with pytest.raises(errors.ConfigError, match='"core" cannot be opened here') as caught:
        ring.open(sealed, "core", "login")
    assert "hunter22" not in str(caught.value)
