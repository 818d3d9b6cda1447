"""The table from errors of SQLAlchemy and its drivers to ours. Texts hold neither values nor
passwords.
"""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from sqlalchemy import exc
from sqlalchemy.engine import URL

from poller import errors
from poller.metering import process_metrics

UPGRADE_HINT = "run: poller db upgrade"

#: Classes of statements and values that no database accepts: syntax, data, cursors, limits.
_REFUSED = "02 03 09 0A 0B 0F 0L 0P 0Z 10 20 21 22 24 26 27 2B 2D 2F 34 38 39 3B 42 44 54 HV P0 XX"

#: Error class by SQLSTATE or its first two digits: every class of PostgreSQL's appendix A.
SQLSTATES: dict[str, type[errors.PollerError]] = {
    "08": errors.StoreUnavailable,  # connection exception
    "25": errors.StoreUnavailable,  # idle in transaction time-out, read-only replica
    "28": errors.StoreUnavailable,  # authorization refused
    "3D": errors.StoreUnavailable,  # no such database
    "42501": errors.StoreUnavailable,  # insufficient privilege
    "53": errors.StoreUnavailable,  # out of connections, memory, disk
    "55": errors.StoreUnavailable,  # lock not available
    "57": errors.StoreUnavailable,  # cancelled by time-out, server shutting down
    "58": errors.StoreUnavailable,  # system error
    "F0": errors.StoreUnavailable,  # configuration file error
    "23": errors.StoreConflict,  # integrity constraint violation
    "40": errors.StoreConflict,  # serialization failure, deadlock
    "72": errors.StoreConflict,  # snapshot too old
    "3F": errors.SchemaMismatch,  # no such schema
    "42P01": errors.SchemaMismatch,  # undefined table
    "42703": errors.SchemaMismatch,  # undefined column
    **dict.fromkeys(_REFUSED.split(), errors.StoreError),
}

#: The words of psycopg for the one character that PostgreSQL neither stores nor compares.
_NUL = "cannot contain NUL"

#: Error class by exception name: those of PEP 249, and psycopg's own below OperationalError.
DRIVERS: dict[str, type[errors.PollerError]] = {
    "IntegrityError": errors.StoreConflict,
    "OperationalError": errors.StoreUnavailable,
    "ConnectionTimeout": errors.StoreUnavailable,
    "CancellationTimeout": errors.StoreUnavailable,
    "PipelineAborted": errors.StoreError,  # we use no pipelines
    "InterfaceError": errors.StoreUnavailable,
    "DataError": errors.StoreError,
    "InternalError": errors.StoreError,
    "NotSupportedError": errors.StoreError,
    "ProgrammingError": errors.StoreError,
    "DatabaseError": errors.StoreError,
    "Error": errors.StoreError,
    "Warning": errors.StoreError,
}

#: Error class for errors without a SQLSTATE; the nearest ancestor of SQLAlchemy's decides.
CLASSES: dict[type[Exception], type[errors.PollerError]] = {
    exc.IntegrityError: errors.StoreConflict,
    exc.OperationalError: errors.StoreUnavailable,
    exc.InterfaceError: errors.StoreUnavailable,
    exc.DisconnectionError: errors.StoreUnavailable,
    exc.InvalidatePoolError: errors.StoreUnavailable,
    exc.TimeoutError: errors.StoreUnavailable,  # every connection of the pool is in use
    exc.NoSuchTableError: errors.SchemaMismatch,
    exc.NoDBAPILoaded: errors.StoreUnavailable,
    # Our own mistakes: statements that cannot be compiled or were not understood.
    **dict.fromkeys(
        (
            exc.SQLAlchemyError,
            exc.StatementError,
            exc.DBAPIError,
            exc.DatabaseError,
            exc.DataError,
            exc.InternalError,
            exc.NotSupportedError,
            exc.ProgrammingError,
            exc.ArgumentError,
            exc.AmbiguousForeignKeysError,
            exc.ConstraintColumnNotFoundError,
            exc.DuplicateColumnError,
            exc.NoForeignKeysError,
            exc.NoSuchModuleError,
            exc.ObjectNotExecutableError,
            exc.CircularDependencyError,
            exc.CompileError,
            exc.UnsupportedCompilationError,
            exc.IdentifierError,
            exc.InvalidRequestError,
            exc.AmbiguousColumnError,
            exc.AwaitRequired,
            exc.IllegalStateChangeError,
            exc.MissingGreenlet,
            exc.MultipleResultsFound,
            exc.NoInspectionAvailable,
            exc.NoReferenceError,
            exc.NoReferencedColumnError,
            exc.NoReferencedTableError,
            exc.NoResultFound,
            exc.NoSuchColumnError,
            exc.PendingRollbackError,
            exc.ResourceClosedError,
            exc.UnboundExecutionError,
            exc.UnreflectableTableError,
            exc.EmulatedDBAPIException,
        ),
        errors.StoreError,
    ),
}


class _Refusal(NamedTuple):
    """A server that runs and refuses the connection. libpq gives no SQLSTATE while it connects."""

    states: tuple[str, ...]
    pattern: re.Pattern[str]
    message: str
    hint: str


_REFUSALS = (
    _Refusal(
        ("28",),
        re.compile(
            r"authentication failed|no password supplied|pg_hba\.conf|not permitted to log in"
            r'|role "[^"]*" does not exist'
        ),
        "the login was refused by the database",
        "correct user and password in POLLER_DATABASE_URL (database_url)",
    ),
    _Refusal(
        ("3D",),
        re.compile(r'database "[^"]*" does not exist'),
        "the server has no such database:",
        "create it, or correct its name in POLLER_DATABASE_URL (database_url)",
    ),
    _Refusal(
        ("42501",),
        re.compile("permission denied for"),
        "the user may not do this in the database",
        "grant the privilege, or name another user in POLLER_DATABASE_URL (database_url)",
    ),
)


@contextmanager
def store_errors(url: URL, access: str) -> Iterator[None]:
    """Translate every exception of SQLAlchemy that is raised inside. Time the transaction."""
    started_mono = time.monotonic()
    try:
        yield
    except exc.SQLAlchemyError as error:
        translated = translate(error, url)
        process_metrics.sql_errors.add(type(translated).__name__)
        raise translated from error
    finally:
        process_metrics.sql_seconds.observe(time.monotonic() - started_mono, access)


def translate(error: exc.SQLAlchemyError, url: URL) -> errors.PollerError:
    if _NUL in str(getattr(error, "orig", "")):
        return errors.InvalidInput("a text has a NUL character", hint="leave it out")
    kind = _kind(error)
    where = url.render_as_string(hide_password=True)
    cause = _cause(error, url)
    if kind is errors.SchemaMismatch:
        message = f"the database {where} has not the tables this program needs"
        return kind(message, cause, UPGRADE_HINT)
    if kind is errors.StoreUnavailable:
        message, hint = _unavailable(error, cause)
        return kind(f"{message} {where}", cause, hint)
    if kind is errors.StoreConflict:
        message = "another program changed the same rows first"
        return kind(message, cause, "check the present state, then repeat the command")
    return kind(f"the database {where} refused a statement", cause)


def _unavailable(error: exc.SQLAlchemyError, cause: str) -> tuple[str, str]:
    """The begin of the message and the hint for a database that cannot be used."""
    state = getattr(getattr(error, "orig", None), "sqlstate", None) or ""
    for refusal in _REFUSALS:
        if state.startswith(refusal.states) or refusal.pattern.search(cause):
            return refusal.message, refusal.hint
    return "cannot use the database", "check that it runs; it is safe to try again"


def _kind(error: exc.SQLAlchemyError) -> type[errors.PollerError]:
    original = getattr(error, "orig", None)
    state = getattr(original, "sqlstate", None) or ""
    for key in (state, state[:2]):
        if key in SQLSTATES:
            return SQLSTATES[key]
    text = str(original)
    if text.startswith(("no such table", "no such column")) or "has no column" in text:
        return errors.SchemaMismatch
    if original is not None:
        for base in type(original).__mro__:
            if base.__name__ in DRIVERS:
                return DRIVERS[base.__name__]
    return next(CLASSES[base] for base in type(error).__mro__ if base in CLASSES)


def _cause(error: exc.SQLAlchemyError, url: URL) -> str:
    """Return the server's first sentence, without statement, row or password."""
    original = getattr(error, "orig", None)
    diagnosis = getattr(getattr(original, "diag", None), "message_primary", None)
    text = " ".join(str(diagnosis or original or error).split())
    if isinstance(url.password, str) and url.password:
        return text.replace(url.password, "***")
    return text
