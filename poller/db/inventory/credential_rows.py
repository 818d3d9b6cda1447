"""Credentials in SQL: names, kinds and envelopes. This module sees no secret and holds no key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import credentials, devices, targets

_USERS_NAMED = 5


@dataclass(frozen=True, slots=True)
class StoredCredential:
    """The part of a credential that may be shown."""

    id: int
    name: str
    kind: str
    version: int
    created_at: datetime
    updated_at: datetime
    devices: int
    targets: int  # targets polled with it: their own credential, or inherited from their device


def add(engine: Engine, name: str, kind: str, envelope: str, author: Author = NOBODY) -> None:
    with inventory_feed.change(engine, author) as change:
        if change.conn.execute(
            sa.select(credentials.c.id).where(credentials.c.name == name)
        ).first():
            raise errors.AlreadyExists(
                f'there is a credential named "{name}" already',
                hint=f"poller credential rotate {name}",
            )
        row = {"name": name, "kind": kind, "envelope": envelope, "version": change.version}
        change.conn.execute(
            sa.insert(credentials).values(**row, created_at=change.now, updated_at=change.now)
        )


def rotate(engine: Engine, name: str, kind: str, envelope: str, author: Author = NOBODY) -> int:
    """Store a new secret. Every target that uses it counts as changed. Returns how many."""
    with inventory_feed.change(engine, author) as change:
        key = lookup.credential_id(change.conn, name)
        values = {
            "kind": kind,
            "envelope": envelope,
            "version": change.version,
            "updated_at": change.now,
        }
        change.conn.execute(sa.update(credentials).where(credentials.c.id == key).values(values))
        inherits = sa.select(devices.c.id).where(devices.c.credential_id == key)
        uses = sa.or_(
            targets.c.credential_id == key,
            sa.and_(targets.c.credential_id.is_(None), targets.c.device_id.in_(inherits)),
        )
        return inventory_feed.stamp_targets(change, uses)


def remove(engine: Engine, name: str, author: Author = NOBODY) -> None:
    """Remove a credential. Raises InvalidInput, naming some users, while it is in use."""
    with inventory_feed.change(engine, author) as change:
        key = lookup.credential_id(change.conn, name)
        users = _users(change.conn, key)
        if users:
            shown = ", ".join(users[:_USERS_NAMED])
            if len(users) > _USERS_NAMED:
                shown += ", ..."
            raise errors.InvalidInput(
                f'credential "{name}" is in use',
                cause=f"by {shown}",
                hint="give them another one first: poller device edit NAME --credential OTHER",
            )
        change.conn.execute(sa.delete(credentials).where(credentials.c.id == key))


def listing(engine: Engine) -> list[StoredCredential]:
    with sql.single_read(engine) as conn:
        return [StoredCredential(**row._mapping) for row in conn.execute(_LISTING)]


def kinds(engine: Engine) -> dict[str, str]:
    """Return the kind of every credential, by name."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(sa.select(credentials.c.name, credentials.c.kind))
        return dict(rows.all())


def kind(engine: Engine, name: str) -> str:
    """Return the kind of one credential. Raises NotFound."""
    with sql.reading(engine) as conn:
        key = lookup.credential_id(conn, name)
        query = sa.select(credentials.c.kind).where(credentials.c.id == key)
        return str(conn.execute(query).scalar_one())


def envelopes(engine: Engine) -> list[str]:
    with sql.single_read(engine) as conn:
        return list(conn.execute(sa.select(credentials.c.envelope)).scalars())


def reseal(engine: Engine, convert: Callable[[str, str, str], str]) -> int:
    """Replace every envelope by `convert(name, kind, envelope)` in one transaction: for a new key.

    The secrets stay the same, so no target changes. Returns the number of credentials.
    """
    with sql.writing(engine) as conn:
        query = sa.select(
            credentials.c.id, credentials.c.name, credentials.c.kind, credentials.c.envelope
        ).with_for_update()
        rows: list[Any] = list(conn.execute(query))
        for row in rows:
            update = sa.update(credentials).where(credentials.c.id == row.id)
            conn.execute(update.values(envelope=convert(row.name, row.kind, row.envelope)))
        return len(rows)


def _users(conn: Connection, key: int | None) -> list[str]:
    own = sa.select(devices.c.name).where(devices.c.credential_id == key)
    parts = sa.select(devices.c.name + "/" + targets.c.name).select_from(targets.join(devices))
    query = sa.union_all(own, parts.where(targets.c.credential_id == key)).limit(_USERS_NAMED + 1)
    return [str(name) for name in conn.execute(query).scalars()]


_used = sa.func.coalesce(targets.c.credential_id, devices.c.credential_id)
_users_of_each = (
    sa.select(_used.label("id"), sa.func.count().label("number"))
    .select_from(targets.join(devices))
    .group_by(_used)
    .subquery()
)
_LISTING = (
    sa.select(
        credentials.c.id,
        credentials.c.name,
        credentials.c.kind,
        credentials.c.version,
        credentials.c.created_at,
        credentials.c.updated_at,
        sa.select(sa.func.count())
        .where(devices.c.credential_id == credentials.c.id)
        .scalar_subquery()
        .label("devices"),
        sa.func.coalesce(_users_of_each.c.number, 0).label("targets"),
    )
    .select_from(credentials.outerjoin(_users_of_each, _users_of_each.c.id == credentials.c.id))
    .order_by(credentials.c.name)
)
