"""Credentials in SQL: names, kinds and envelopes. This module sees no secret and holds no key."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import row_tag

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

    @property
    def tag(self) -> str:
        """The tag of this version of the secret."""
        return _tag(self.name, self.kind, self.version)


def _tag(name: str, kind: str, version: int) -> str:
    return row_tag.row_tag({"name": name, "kind": kind, "version": version})


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
        change.record(AuditEntry("credential.add", name, after={"name": name, "kind": kind}))


def rotate(
    engine: Engine,
    name: str,
    kind: str,
    envelope: str,
    author: Author = NOBODY,
    expected: str | None = None,
) -> int:
    """Store a new secret. Every target that uses it counts as changed. Returns how many.

    Raises NotFound, EditConflict if the credential does not have the expected tag.
    """
    with inventory_feed.change(engine, author) as change:
        key = lookup.credential_id(change.conn, name)
        old = _expected_row(change.conn, key, expected)
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
        used = inventory_feed.stamp_targets(change, uses)
        after = {"kind": kind, "version": change.version, "targets": used}
        before = {"kind": old.kind, "version": old.version}
        change.record(AuditEntry("credential.rotate", name, before, after))
        return used


def remove(engine: Engine, name: str, author: Author = NOBODY, expected: str | None = None) -> None:
    """Remove a credential. Raises InvalidInput, naming some users, while it is in use.

    Raises NotFound, EditConflict if it does not have the expected tag.
    """
    with inventory_feed.change(engine, author) as change:
        key = lookup.credential_id(change.conn, name)
        old = _expected_row(change.conn, key, expected)
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
        change.record(AuditEntry("credential.remove", name, before={"kind": old.kind}))


def _expected_row(conn: Connection, key: int | None, expected: str | None) -> Any:
    """Return name, kind and version of a credential. Raises EditConflict."""
    columns = (credentials.c.name, credentials.c.kind, credentials.c.version)
    row = conn.execute(sa.select(*columns).where(credentials.c.id == key)).one()
    row_tag.refuse_changed("credential", row.name, _tag(*row), expected)
    return row


def listing(engine: Engine, site: str | None = None) -> list[StoredCredential]:
    """Return all credentials by name; with a site, only its own devices and targets count."""
    query = _LISTING if site is None else _listing(_at(site))
    with sql.single_read(engine) as conn:
        return [StoredCredential(**row._mapping) for row in conn.execute(query)]


def show(engine: Engine, name: str) -> StoredCredential:
    """Return one credential without its secret. Raises NotFound with the nearest name."""
    with sql.reading(engine) as conn:
        key = lookup.credential_id(conn, name)
        return StoredCredential(
            **conn.execute(_LISTING.where(credentials.c.id == key)).one()._mapping
        )


def used_at(engine: Engine, site: str) -> set[str]:
    """Return the names of the credentials that devices and targets of a site use."""
    here = _at(site)
    of_devices = sa.select(devices.c.credential_id).where(here)
    joined = targets.join(devices, targets.c.device_id == devices.c.id)
    of_targets = sa.select(targets.c.credential_id).select_from(joined).where(here)
    used = credentials.c.id.in_(sa.union(of_devices, of_targets))
    with sql.single_read(engine) as conn:
        return set(conn.execute(sa.select(credentials.c.name).where(used)).scalars())


def kinds(engine: Engine) -> dict[str, str]:
    """Return the kind of every credential, by name."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(sa.select(credentials.c.name, credentials.c.kind))
        return dict(rows.all())


def names(engine: Engine) -> dict[int, str]:
    """Return the name of every credential, by id."""
    with sql.single_read(engine) as conn:
        rows = conn.execute(sa.select(credentials.c.id, credentials.c.name))
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


def reseal(
    engine: Engine,
    convert: Callable[[str, str, str], str],
    author: Author = NOBODY,
    key_id: str = "",
) -> int:
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
        if author.actor is not None:
            names = audit_entry.bounded_names([row.name for row in rows])
            after = {"key_id": key_id, "names": names}
            entry = AuditEntry("credential.rotate-key", "all credentials", {}, after, len(rows))
            audit_rows.append(conn, author.actor, [entry], database_clock.read_ms(conn))
        return len(rows)


def _users(conn: Connection, key: int | None) -> list[str]:
    own = sa.select(devices.c.name).where(devices.c.credential_id == key)
    parts = sa.select(devices.c.name + "/" + targets.c.name).select_from(targets.join(devices))
    query = sa.union_all(own, parts.where(targets.c.credential_id == key)).limit(_USERS_NAMED + 1)
    return [str(name) for name in conn.execute(query).scalars()]


def _at(site: str) -> sa.ColumnElement[bool]:
    """The condition of devices at a site."""
    return devices.c.site_id.in_(sa.select(sites.c.id).where(sites.c.name == site))


def _listing(here: sa.ColumnElement[bool]) -> sa.Select[Any]:
    """All credentials, with the numbers of the devices and targets of a condition that use them."""
    used = sa.func.coalesce(targets.c.credential_id, devices.c.credential_id)
    users_of_each = (
        sa.select(used.label("id"), sa.func.count().label("number"))
        .select_from(targets.join(devices))
        .where(here)
        .group_by(used)
        .subquery()
    )
    of_devices = sa.select(sa.func.count()).where(devices.c.credential_id == credentials.c.id, here)
    return (
        sa.select(
            credentials.c.id,
            credentials.c.name,
            credentials.c.kind,
            credentials.c.version,
            credentials.c.created_at,
            credentials.c.updated_at,
            of_devices.scalar_subquery().label("devices"),
            sa.func.coalesce(users_of_each.c.number, 0).label("targets"),
        )
        .select_from(credentials.outerjoin(users_of_each, users_of_each.c.id == credentials.c.id))
        .order_by(credentials.c.name)
    )


_LISTING = _listing(sa.true())
