"""Names to rows: one error for every name that does not exist, with the nearest one that does."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller import errors
from poller.db.in_list import among
from poller.db.inventory.inventory_feed import Change
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory import did_you_mean as nearest_name

#: How many names are compared for a suggestion: enough to help, too few to be felt.
_CANDIDATES = 2_000


def device_id(conn: Connection, name: str) -> int:
    return _id(conn, devices, name, "device", "poller device list")


def device_ids(conn: Connection, names: Sequence[str]) -> list[int]:
    """The ids of all of these devices, or NotFound for the first that is missing."""
    query = sa.select(devices.c.name, devices.c.id).where(among(devices.c.name, names))
    found: dict[str, int] = dict(conn.execute(query).all())
    for name in names:
        if name not in found:
            raise missing(conn, devices, name, "device", "poller device list")
    return list(found.values())


def credential_id(conn: Connection, name: str) -> int | None:
    """None for the empty name: no credential."""
    return _id(conn, credentials, name, "credential", "poller credential list") if name else None


def site_id(at: Change, name: str) -> int | None:
    """The site of that name, made on demand; None for the empty name. A site stays when its devices leave."""
    if not name:
        return None
    found = at.conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
    if found is None:
        row = {"name": name, "requires": {}, "created_at": at.now, "updated_at": at.now}
        found = at.conn.execute(sa.insert(sites).values(row).returning(sites.c.id)).scalar_one()
    return int(found)


def target_id(conn: Connection, device: str, name: str) -> int:
    """A target by its device and its name."""
    parent = device_id(conn, device)
    of_device = targets.c.device_id == parent
    found = conn.execute(sa.select(targets.c.id).where(of_device, targets.c.name == name)).scalar()
    if found is None:
        known = (
            conn.execute(sa.select(targets.c.name).where(of_device).order_by(targets.c.name))
            .scalars()
            .all()
        )
        has = "it has " + ", ".join(known) if known else "it has none"
        raise errors.NotFound(f'device "{device}" has no target named "{name}"', cause=has)
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
    """The most similar name among those that begin alike, the longer the better, or among the first ones."""
    column = table.c.name
    for prefix in (name[: len(name) // 2], name[:2], ""):
        query = sa.select(column).where(column.startswith(prefix, autoescape=True)).order_by(column)
        names = conn.execute(query.limit(_CANDIDATES)).scalars().all()
        if close := nearest_name.nearest(name, names):
            return close
    return None
