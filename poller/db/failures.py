"""The one table from SQLAlchemy and driver errors to ours. Texts carry neither values nor passwords."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from sqlalchemy import exc
from sqlalchemy.engine import URL

from poller import errors

UPGRADE_HINT = "run: poller db upgrade"

#: SQLSTATE (or its first two digits) -> error class. PostgreSQL, appendix A.
SQLSTATES: dict[str, type[errors.PollerError]] = {
    "23": errors.StoreConflict,  # integrity constraint violation
    "40": errors.StoreConflict,  # serialization failure, deadlock
    "42P01": errors.SchemaMismatch,  # undefined table
    "42703": errors.SchemaMismatch,  # undefined column
    "08": errors.StoreUnavailable,  # connection exception
    "28": errors.StoreUnavailable,  # authorization refused
    "3D": errors.StoreUnavailable,  # no such database
    "53": errors.StoreUnavailable,  # out of connections, memory, disk
    "55": errors.StoreUnavailable,  # lock not available
    "57": errors.StoreUnavailable,  # cancelled by time-out, server shutting down
    "58": errors.StoreUnavailable,  # system error
    "25": errors.StoreUnavailable,  # idle in transaction time-out, read-only replica
}

#: SQLAlchemy's own classes, most specific first: for SQLite, and for errors without a SQLSTATE.
CLASSES: tuple[tuple[type[exc.SQLAlchemyError], type[errors.PollerError]], ...] = (
    (exc.IntegrityError, errors.StoreConflict),
    (exc.OperationalError, errors.StoreUnavailable),
    (exc.InterfaceError, errors.StoreUnavailable),
    (exc.DisconnectionError, errors.StoreUnavailable),
    (exc.TimeoutError, errors.StoreUnavailable),  # every connection of the pool is in use
    (exc.SQLAlchemyError, errors.StoreError),
)


@contextmanager
def store_errors(url: URL) -> Iterator[None]:
    """Whatever SQLAlchemy raises inside leaves as one of ours."""
    try:
        yield
    except exc.SQLAlchemyError as error:
        raise translate(error, url) from error


def translate(error: exc.SQLAlchemyError, url: URL) -> errors.PollerError:
    kind = _kind(error)
    where = url.render_as_string(hide_password=True)
    cause = _cause(error, url)
    if kind is errors.SchemaMismatch:
        return kind(f"the database {where} has not the tables this program needs", cause, UPGRADE_HINT)
    if kind is errors.StoreUnavailable:
        return kind(f"cannot use the database {where}", cause, "check that it runs; it is safe to try again")
    if kind is errors.StoreConflict:
        return kind("somebody else changed the same thing first", cause, "look at it again and repeat")
    return kind(f"the database {where} refused a statement", cause)


def _kind(error: exc.SQLAlchemyError) -> type[errors.PollerError]:
    original = getattr(error, "orig", None)
    state = getattr(original, "sqlstate", None) or ""
    for key in (state, state[:2]):
        if key in SQLSTATES:
            return SQLSTATES[key]
    if str(original).startswith(("no such table", "no such column")) or "has no column" in str(original):
        return errors.SchemaMismatch
    return next(ours for theirs, ours in CLASSES if isinstance(error, theirs))


def _cause(error: exc.SQLAlchemyError, url: URL) -> str:
    """The server's own first sentence: no statement, no row, no password."""
    original = getattr(error, "orig", None)
    diagnosis = getattr(getattr(original, "diag", None), "message_primary", None)
    text = " ".join(str(diagnosis or original or error).split())
    return text.replace(url.password, "***") if isinstance(url.password, str) and url.password else text
