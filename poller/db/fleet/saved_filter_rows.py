"""Saved filters in SQL. A change is one transaction with its audit row."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine, Row

from poller import errors
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.tables import saved_filters
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.fleet import saved_filter
from poller.domain.fleet.device_sort import DeviceSort
from poller.domain.fleet.saved_filter import SavedFilter

#: Rows that a list shows; nobody reads more.
MOST_LISTED = 200


def visible(engine: Engine, owner: str) -> list[SavedFilter]:
    """Return the filters of an owner and those that others share, by name. Raises StoreError."""
    is_visible = sa.or_(saved_filters.c.owner == owner, saved_filters.c.is_shared)
    return _listing(engine, _ROWS.where(is_visible))


def every(engine: Engine) -> list[SavedFilter]:
    """Return the filters of all owners, by name. Raises StoreError."""
    return _listing(engine, _ROWS)


def save(engine: Engine, checked: SavedFilter, actor: Actor, now_ms: int) -> None:
    """Store a filter, or replace the one that its owner has under this name.

    Raises InvalidInput if the owner has too many, StoreError.
    """
    values = {
        "where": checked.where,
        "sort": checked.sort.value,
        "is_shared": checked.is_shared,
        "updated_ms": now_ms,
    }
    with sql.writing(engine) as conn:
        update = sa.update(saved_filters).where(*_key(checked.owner, checked.name)).values(values)
        if not conn.execute(update).rowcount:
            _refuse_many(conn, checked.owner)
            key = {"owner": checked.owner, "name": checked.name}
            conn.execute(sa.insert(saved_filters).values({**key, **values}))
        after = {"where": checked.where, "sort": values["sort"], "shared": checked.is_shared}
        audit_rows.append(
            conn, actor, [AuditEntry("filter.save", checked.name, after=after)], now_ms
        )


def remove(engine: Engine, owner: str, name: str, actor: Actor, now_ms: int) -> bool:
    """Remove a filter. Return False if there is none. Raises StoreError."""
    with sql.writing(engine) as conn:
        row = conn.execute(_ROWS.where(*_key(owner, name))).one_or_none()
        if row is None:
            return False
        conn.execute(sa.delete(saved_filters).where(*_key(owner, name)))
        before = {"where": row.where, "owner": owner}
        audit_rows.append(conn, actor, [AuditEntry("filter.remove", name, before)], now_ms)
    return True


def _refuse_many(conn: Connection, owner: str) -> None:
    query = sa.select(sa.func.count()).where(saved_filters.c.owner == owner)
    if int(conn.execute(query.select_from(saved_filters)).scalar_one()) >= saved_filter.MOST:
        raise errors.InvalidInput(
            f"name: you have {saved_filter.MOST} saved filters already",
            hint="remove one",
            field="name",
        )


def _key(owner: str, name: str) -> tuple[sa.ColumnElement[bool], ...]:
    return saved_filters.c.owner == owner, saved_filters.c.name == name


def _listing(engine: Engine, query: sa.Select[Any]) -> list[SavedFilter]:
    ordered = query.order_by(saved_filters.c.name, saved_filters.c.owner).limit(MOST_LISTED)
    with sql.single_read(engine) as conn:
        return [_of_row(row) for row in conn.execute(ordered)]


def _of_row(row: Row[Any]) -> SavedFilter:
    sort = DeviceSort(row.sort) if row.sort in list(DeviceSort) else DeviceSort.NAME
    return SavedFilter(row.name, row.owner, row.where, sort, bool(row.is_shared))


_ROWS = sa.select(saved_filters)
