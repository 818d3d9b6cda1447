"""Devices in SQL: add, edit, remove, list, show. Each change is one transaction with one
version.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.alerts import parent_rows
from poller.db.in_list import in_list
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import NOBODY, Author, Change
from poller.db.inventory.targets import TargetPort
from poller.db.tables import credentials, devices, removed_targets, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import row_tag
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.tag_change import TagChange


@dataclass(frozen=True, slots=True)
class Device:
    id: int
    name: str
    address: str
    site: str
    credential: str
    tags: tuple[str, ...]
    requires: Mapping[str, str]
    enabled: bool
    parent: str  # the device through which it is reached; "" is none
    created_at: datetime
    updated_at: datetime
    targets: int

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that people edit."""
        names = ("name", "address", "site", "credential", "tags", "requires", "enabled", "parent")
        return {name: getattr(self, name) for name in names}

    @property
    def tag(self) -> str:
        """The tag of the fields that people edit."""
        return row_tag.row_tag(self.fields)


def add(
    engine: Engine,
    draft: DeviceDraft,
    first: Sequence[TargetDraft] = (),
    author: Author = NOBODY,
) -> Device:
    """Store a new device and its first targets. Raises AlreadyExists, NotFound."""
    if draft.address is None:
        raise errors.InvalidInput(
            "the address is missing", hint="give an IP address or a host name"
        )
    with inventory_feed.change(engine, author) as change:
        _refuse_taken(change.conn, draft.name)
        stamps = {"created_at": change.now, "updated_at": change.now}
        row = {**DEFAULTS, **columns(change, draft), **stamps}
        insert = sa.insert(devices).values(row).returning(devices.c.id)
        device_id = int(change.conn.execute(insert).scalar_one())
        if draft.parent:
            parent_rows.set_one(change, [device_id], draft.parent)
        for target in first:
            target_rows.insert(change, device_id, draft.name, target)
        added = _one(change.conn, draft.name)
        names = [target.name or target.collector for target in first]
        change.record(
            AuditEntry("device.add", added.name, after={**added.fields, "targets": names})
        )
        return added


def edit(
    engine: Engine,
    name: str,
    draft: DeviceDraft,
    author: Author = NOBODY,
    tags: TagChange | None = None,
    expected: str | None = None,
    port: TargetPort | None = None,
) -> Device:
    """Change the fields that the draft gives. Every target of the device counts as changed.

    `port` is the port of the new address.

    Raises NotFound, AlreadyExists, EditConflict if the device does not have the expected tag.
    """
    with inventory_feed.change(engine, author) as change:
        old = _one(change.conn, name)
        row_tag.refuse_changed("device", name, old.tag, expected)
        if draft.name != name:
            _refuse_taken(change.conn, draft.name)
        values = {**columns(change, draft), "updated_at": change.now}
        if tags is not None:
            values["tags"] = tags.applied_to(old.tags)
        update = sa.update(devices).where(devices.c.id == old.id).values(values)
        change.conn.execute(update)
        if draft.parent is not None:
            parent_rows.set_one(change, [old.id], draft.parent)
        if port is not None:
            target_rows.set_port(change, draft.name, port)
        inventory_feed.stamp_targets(change, targets.c.device_id == old.id)
        new = _one(change.conn, draft.name)
        change.record(audit_entry.differing("device.edit", name, old.fields, new.fields))
        return new


def remove(
    engine: Engine, names: Sequence[str], author: Author = NOBODY, expected: str | None = None
) -> int:
    """Remove devices with their targets, all or none. Returns the number of removed targets.

    Raises NotFound, EditConflict if the one device does not have the expected tag.
    """
    with inventory_feed.change(engine, author) as change:
        if expected is not None:
            tag = _one(change.conn, names[0]).tag
            row_tag.refuse_changed("device", names[0], tag, expected)
        named = lookup.named_devices(change.conn, names)
        return remove_ids(change, [device.id for device in named])


def remove_ids(change: Change, ids: Collection[int], subject: str = "") -> int:
    """Remove devices with their targets within a change. Returns the number of these targets.

    `subject` is the filter that selected them, for the audit log.
    """
    change.record(_removal_entry(change.conn, ids, subject))
    removed = record_removal(change, in_list(targets.c.device_id, ids))
    change.conn.execute(sa.delete(devices).where(in_list(devices.c.id, ids)))
    return removed


def _removal_entry(conn: Connection, ids: Collection[int], subject: str) -> AuditEntry:
    query = sa.select(devices.c.name).where(in_list(devices.c.id, ids)).order_by(devices.c.name)
    names = list(conn.execute(query).scalars())
    if len(names) == 1 and not subject:
        return AuditEntry("device.remove", names[0], before=_one(conn, names[0]).fields)
    before = {"names": audit_entry.bounded_names(names)}
    return AuditEntry("device.remove", subject or f"{len(names)} devices", before, {}, len(names))


def record_removal(change: Change, *conditions: sa.ColumnElement[bool]) -> int:
    """Record for the scheduler which targets are about to be deleted. Returns how many."""
    rows = sa.select(targets.c.id, sa.literal(change.version)).where(*conditions)
    insert = sa.insert(removed_targets).from_select(["target_id", "version"], rows)
    done = change.conn.execute(insert, execution_options={"preserve_rowcount": True})
    return done.rowcount


def show(engine: Engine, name: str) -> Device:
    """Return one device. Raises NotFound with the nearest name."""
    with sql.reading(engine) as conn:
        return _one(conn, name)


def listing(
    engine: Engine,
    *,
    ids: Collection[int] | None = None,
    limit: int | None = 50,
    after: str = "",
) -> list[Device]:
    """Return devices in the order of their names, from the one after `after` on.

    `ids` are those that a filter selects; None is all.
    """
    query = _DEVICES.order_by(devices.c.name).limit(limit)
    if after:
        query = query.where(devices.c.name > after)
    if ids is not None:
        query = query.where(in_list(devices.c.id, ids))
    with sql.single_read(engine) as conn:
        return [_device(row) for row in conn.execute(query)]


def count(engine: Engine) -> int:
    query = sa.select(sa.func.count()).select_from(devices)
    with sql.single_read(engine) as conn:
        return int(conn.execute(query).scalar_one())


def _one(conn: Connection, name: str) -> Device:
    row = conn.execute(_DEVICES.where(devices.c.name == name)).first()
    if row is None:
        raise lookup.missing(conn, devices, name, "device", "poller device list")
    return _device(row)


def _device(row: Any) -> Device:
    fields = dict(row._mapping)
    fields["tags"] = tuple(fields["tags"])
    return Device(**fields)


def _refuse_taken(conn: Connection, name: str) -> None:
    if conn.execute(sa.select(devices.c.id).where(devices.c.name == name)).first():
        message = f'there is a device named "{name}" already'
        raise errors.AlreadyExists(message, hint=f"poller device show {name}")


def columns(change: Change, draft: DeviceDraft) -> dict[str, Any]:
    """Return the columns that a draft gives; a draft for many devices has no name."""
    values: dict[str, Any] = {"name": draft.name} if draft.name else {}
    if draft.site is not None:
        values["site_id"] = lookup.site_id(change, draft.site)
    if draft.credential is not None:
        values["credential_id"] = lookup.named_credential_id(change.conn, draft.credential)
    if draft.tags is not None:
        values["tags"] = list(draft.tags)
    given = {"address": draft.address, "requires": draft.requires, "enabled": draft.enabled}
    return values | {column: value for column, value in given.items() if value is not None}


DEFAULTS: dict[str, Any] = {
    "site_id": None,
    "credential_id": None,
    "tags": [],
    "requires": {},
    "enabled": True,
}

_DEVICES = sa.select(
    devices.c.id,
    devices.c.name,
    devices.c.address,
    sa.func.coalesce(sites.c.name, "").label("site"),
    sa.func.coalesce(credentials.c.name, "").label("credential"),
    devices.c.tags,
    devices.c.requires,
    devices.c.enabled,
    sa.func.coalesce(parent_rows.NAME, "").label("parent"),
    devices.c.created_at,
    devices.c.updated_at,
    sa.select(sa.func.count())
    .where(targets.c.device_id == devices.c.id)
    .scalar_subquery()
    .label("targets"),
).select_from(
    devices.outerjoin(sites, devices.c.site_id == sites.c.id).outerjoin(
        credentials, devices.c.credential_id == credentials.c.id
    )
)
