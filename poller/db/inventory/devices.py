"""Devices: add, edit, remove, list and show. Each change is one transaction with one inventory version."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import Change, Notify
from poller.db.tables import credentials, devices, removed_targets, sites, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft


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
    created_at: datetime
    updated_at: datetime
    targets: int


def add(
    engine: Engine,
    draft: DeviceDraft,
    first: Sequence[TargetDraft] = (),
    notify: Notify | None = None,
) -> Device:
    """Store a new device, with its first targets if given. Raises AlreadyExists, NotFound."""
    if draft.address is None:
        raise errors.InvalidInput("the address is missing", hint="poller device add NAME ADDRESS")
    with inventory_feed.change(engine, notify) as at:
        _refuse_taken(at.conn, draft.name)
        row = {**DEFAULTS, **_values(at, draft), "created_at": at.now, "updated_at": at.now}
        key = at.conn.execute(sa.insert(devices).values(row).returning(devices.c.id)).scalar_one()
        for target in first:
            target_rows.insert(at, int(key), draft.name, target)
        return _one(at.conn, draft.name)


def edit(engine: Engine, name: str, draft: DeviceDraft, notify: Notify | None = None) -> Device:
    """Change what the draft gives, its name included; every target of the device counts as changed."""
    with inventory_feed.change(engine, notify) as at:
        key = lookup.device_id(at.conn, name)
        if draft.name != name:
            _refuse_taken(at.conn, draft.name)
        values = {**_values(at, draft), "updated_at": at.now}
        at.conn.execute(sa.update(devices).where(devices.c.id == key).values(values))
        inventory_feed.stamp_targets(at, targets.c.device_id == key)
        return _one(at.conn, draft.name)


def remove(engine: Engine, names: Sequence[str], notify: Notify | None = None) -> int:
    """Remove devices with their targets, all or none; returns how many targets went."""
    with inventory_feed.change(engine, notify) as at:
        keys = lookup.device_ids(at.conn, names)
        gone = note_removed(at, among(targets.c.device_id, keys))
        at.conn.execute(sa.delete(devices).where(among(devices.c.id, keys)))
        return gone


def note_removed(at: Change, *conditions: sa.ColumnElement[bool]) -> int:
    """Tell the scheduler which targets are going; call before they are deleted."""
    doomed = sa.select(targets.c.id, sa.literal(at.version)).where(*conditions)
    note = sa.insert(removed_targets).from_select(["target_id", "version"], doomed)
    noted = at.conn.execute(note, execution_options={"preserve_rowcount": True})
    return noted.rowcount


def show(engine: Engine, name: str) -> Device:
    """One device. Raises NotFound, naming the nearest one."""
    with sql.reading(engine) as conn:
        return _one(conn, name)


def listing(
    engine: Engine,
    *,
    site: str | None = None,
    tag: str | None = None,
    limit: int | None = 50,
    after: str = "",
) -> list[Device]:
    """Devices in the order of their names, those after `after` (a name) first."""
    with _select(engine, site, tag, limit, after) as rows:
        return [_device(row) for row in rows]


def count(engine: Engine, *, site: str | None = None, tag: str | None = None) -> int:
    query = sa.select(sa.func.count()).select_from(devices.outerjoin(sites))
    with sql.peeking(engine) as conn:
        return int(conn.execute(query.where(*_filters(conn, site, tag))).scalar_one())


@contextmanager
def _select(
    engine: Engine, site: str | None, tag: str | None, limit: int | None, after: str
) -> Iterator[sa.CursorResult[*tuple[Any, ...]]]:
    with sql.peeking(engine) as conn:
        query = _DEVICES.where(*_filters(conn, site, tag)).order_by(devices.c.name).limit(limit)
        yield conn.execute(query.where(devices.c.name > after) if after else query)


def _filters(conn: Connection, site: str | None, tag: str | None) -> list[sa.ColumnElement[bool]]:
    found: list[sa.ColumnElement[bool]] = []
    if site is not None:
        found.append(sites.c.name == site if site else devices.c.site_id.is_(None))
    if tag is not None:
        each = (
            sa.func.jsonb_array_elements_text
            if conn.dialect.name == "postgresql"
            else sa.func.json_each
        )(devices.c.tags).table_valued("value")
        found.append(sa.exists().select_from(each).where(each.c.value == tag))
    return found


def _one(conn: Connection, name: str) -> Device:
    row = conn.execute(_DEVICES.where(devices.c.name == name)).first()
    if row is None:
        raise lookup.missing(conn, devices, name, "device", "poller device list")
    return _device(row)


def _device(row: Any) -> Device:
    key, name, address, site, credential, tags, *rest = row
    return Device(key, name, address, site, credential, tuple(tags), *rest)


def _refuse_taken(conn: Connection, name: str) -> None:
    if conn.execute(sa.select(devices.c.id).where(devices.c.name == name)).first():
        raise errors.AlreadyExists(
            f'there is a device named "{name}" already', hint=f"poller device show {name}"
        )


def _values(at: Change, draft: DeviceDraft) -> dict[str, Any]:
    """The columns a draft gives."""
    values: dict[str, Any] = {"name": draft.name}
    if draft.site is not None:
        values["site_id"] = lookup.site_id(at, draft.site)
    if draft.credential is not None:
        values["credential_id"] = lookup.credential_id(at.conn, draft.credential)
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
    sa.func.coalesce(sites.c.name, ""),
    sa.func.coalesce(credentials.c.name, ""),
    devices.c.tags,
    devices.c.requires,
    devices.c.enabled,
    devices.c.created_at,
    devices.c.updated_at,
    sa.select(sa.func.count()).where(targets.c.device_id == devices.c.id).scalar_subquery(),
).select_from(
    devices.outerjoin(sites, devices.c.site_id == sites.c.id).outerjoin(
        credentials, devices.c.credential_id == credentials.c.id
    )
)
