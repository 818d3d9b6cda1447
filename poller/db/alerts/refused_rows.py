"""Rows that the database refuses for what is in them, found by halves: all others are stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from sqlalchemy import exc
from sqlalchemy.engine import Connection

from poller import errors
from poller.db import sql_errors

_Item = TypeVar("_Item")
#: What drivers raise for values that they cannot send: half a character, a number of 70 bits.
_UNSENDABLE = (exc.SQLAlchemyError, ValueError, OverflowError)


def store_by_halves(
    conn: Connection, items: Sequence[_Item], store: Callable[[Sequence[_Item]], None]
) -> list[tuple[_Item, str]]:
    """Store items together. After a refusal each half is stored apart, down to the row at fault.

    Returns the refused items with the reasons. Raises everything that is no refusal of a row.
    """
    if not items:
        return []
    try:
        with conn.begin_nested():
            store(items)
        return []
    except _UNSENDABLE as error:
        reason = _reason(conn, error)
        if not reason:
            raise
    if len(items) == 1:
        return [(items[0], reason)]
    half = len(items) // 2
    first = store_by_halves(conn, items[:half], store)
    return first + store_by_halves(conn, items[half:], store)


def _reason(conn: Connection, error: Exception) -> str:
    """The words of a refusal of a row; "" for any other fault."""
    if not isinstance(error, exc.SQLAlchemyError):
        return f"a value cannot be sent to the database ({type(error).__name__})"
    translated = sql_errors.translate(error, conn.engine.url)
    if isinstance(translated, errors.StoreUnavailable | errors.SchemaMismatch):
        return ""
    if isinstance(translated, errors.StoreConflict) and not isinstance(error, exc.IntegrityError):
        return ""  # a deadlock: the whole transaction is tried again
    return str(translated)
