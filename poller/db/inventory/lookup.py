"""Find rows by name. A name that does not exist is one kind of error, with the nearest existing
name.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller import errors
from poller.db.in_list import in_list
from poller.db.inventory.filter_conditions import SelectedDevice
from poller.db.inventory.inventory_feed import Change
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory import did_you_mean as nearest_name

#: Names compared for one suggestion: enough to help, few enough to cost no noticeable time.
_CANDIDATES = 2_000


def device_id(conn: Connection, name: str) -> int:
    return _id(conn, devices, name, "device", "poller device list")


def named_devices(conn: Connection, names: Sequence[str]) -> list[SelectedDevice]:
    """Return these devices, each once. Raises NotFound for the first missing name."""
    query = sa.select(devices.c.id, devices.c.name).where(in_list(devices.c.name, names))
    found = [SelectedDevice(row.id, row.name) for row in conn.execute(query)]
    existing = {device.name for device in found}
    for name in names:
        if name not in existing:
            raise missing(conn, devices, name, "device", "poller device list")
    return found


def credential_id(conn: Connection, name: str) -> int | None:
    """Return the credential of that name, or None for the empty name. Raises NotFound."""
    if not name:
        return None
    return _id(conn, credentials, name, "credential", "poller credential list")


def named_credential_id(conn: Connection, name: str) -> int | None:
    """Return the credential that a field of a device or target names. Raises UnknownName."""
    with unknown_name("credential"):
        return credential_id(conn, name)


@contextmanager
def unknown_name(field: str) -> Iterator[None]:
    """Turn NotFound into UnknownName: the name is the value of a field, not what was asked for."""
    try:
        yield
    except errors.NotFound as error:
        raise errors.UnknownName(*error.args, field=field) from None


def site_id(change: Change, name: str) -> int | None:
    """Return the site of that name, created if missing, or None for the empty name."""
    if not name:
        return None
    found = change.conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
    if found is None:
        row = {
            "name": name,
            "requires": {},
            "created_at": change.now,
            "updated_at": change.now,
        }
        insert = sa.insert(sites).values(row).returning(sites.c.id)
        found = change.conn.execute(insert).scalar_one()
    return int(found)


def target_id(conn: Connection, device: str, name: str) -> int:
    """Return the target of that device and name. Raises NotFound with the names that exist."""
    of_device = targets.c.device_id == device_id(conn, device)
    query = sa.select(targets.c.id).where(of_device, targets.c.name == name)
    found = conn.execute(query).scalar()
    if found is None:
        all_names = sa.select(targets.c.name).where(of_device).order_by(targets.c.name)
        existing = conn.execute(all_names).scalars().all()
        cause = "it has " + ", ".join(existing) if existing else "it has none"
        message = f'device "{device}" has no target named "{name}"'
        raise errors.NotFound(message, cause=cause, hint=f"poller target list {device}")
    return int(found)


def _id(conn: Connection, table: sa.Table[Any], name: str, noun: str, command: str) -> int:
    found = conn.execute(sa.select(table.c.id).where(table.c.name == name)).scalar()
    if found is None:
        raise missing(conn, table, name, noun, command)
    return int(found)


def missing(
    conn: Connection, table: sa.Table[Any], name: str, noun: str, command: str
) -> errors.NotFound:
    near = nearest(conn, table, name)
    hint = f"did you mean {near}? (or: {command})" if near else command
    return errors.NotFound(f'no {noun} named "{name}"', hint=hint)


def nearest(conn: Connection, table: sa.Table[Any], name: str) -> str | None:
    """Return the most similar name: among names with a long common prefix, then a short one, then
    any.
    """
    column = table.c.name
    for prefix in (name[: len(name) // 2], name[:2], ""):
        query = sa.select(column).where(column.startswith(prefix, autoescape=True)).order_by(column)
        names = conn.execute(query.limit(_CANDIDATES)).scalars().all()
        similar = nearest_name.nearest(name, names)
        if similar:
            return similar
    return None
