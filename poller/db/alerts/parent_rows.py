"""The parents of devices in SQL: each device has one at most, and no chain goes round.

The writers run within a change of the inventory, whose lock keeps two of them from closing a
circle together.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import bulk
from poller.db import engine as sql
from poller.db.alerts.alert_tables import device_parents
from poller.db.in_list import in_list
from poller.db.inventory import lookup
from poller.db.inventory.inventory_feed import Change
from poller.db.tables import devices, sites
from poller.domain.alerts.topology import parent_chain

HAND = "hand"
IMPORT = "import"
NEIGHBOURS = "neighbours"

_COLUMNS = ("device_id", "parent_id", "source")
_device = devices.alias("child")
_parent = devices.alias("parent")

#: The name of the parent of each device, for a query of `devices`.
NAME = (
    sa.select(_parent.c.name)
    .select_from(device_parents.join(_parent, device_parents.c.parent_id == _parent.c.id))
    .where(device_parents.c.device_id == devices.c.id)
    .correlate(devices)
    .scalar_subquery()
)


class StoredParent(NamedTuple):
    """A device, its parent, and who said so: `hand`, `import` or `neighbours`."""

    device_id: int
    device: str
    parent_id: int
    parent: str
    source: str


def listing(engine: Engine, site: str | None = None) -> list[StoredParent]:
    """Return all parents by the names of the devices, of one site or all. Raises StoreError."""
    query = _LISTED.order_by(_device.c.name)
    if site is not None:
        query = query.where(sa.func.coalesce(sites.c.name, "") == site)
    with sql.single_read(engine) as conn:
        return [StoredParent(*row) for row in conn.execute(query)]


def by_id(conn: Connection) -> dict[int, int]:
    """Return the parent of each device that has one."""
    rows = conn.execute(sa.select(device_parents.c.device_id, device_parents.c.parent_id))
    return {device_id: parent_id for device_id, parent_id in rows}  # noqa: C416  typed


def by_name(conn: Connection) -> dict[str, str]:
    """Return the parent of each device that has one, by names."""
    return {row.device: row.parent for row in conn.execute(_LISTED)}


def set_one(change: Change, device_ids: Collection[int], parent: str, source: str = HAND) -> None:
    """Give devices a parent by its name; "" is none. Raises UnknownName, InvalidInput."""
    if not parent:
        _remove(change.conn, device_ids)
        return
    with lookup.unknown_name("parent"):
        parent_id = lookup.device_id(change.conn, parent)
    set_many(change, dict.fromkeys(device_ids, parent_id), source)


def set_many(change: Change, parents: Mapping[int, int], source: str) -> None:
    """Give each device its parent, all or none. Raises InvalidInput if a chain goes round."""
    if not parents:
        return
    found = parent_chain.first_round_trip({**by_id(change.conn), **parents}, parents)
    if found:
        raise _goes_round(change.conn, found)
    _remove(change.conn, parents)
    rows = [(device_id, parent_id, source) for device_id, parent_id in sorted(parents.items())]
    bulk.insert(change.conn, device_parents, rows, columns=_COLUMNS)


def _remove(conn: Connection, device_ids: Collection[int]) -> None:
    conn.execute(
        sa.delete(device_parents).where(in_list(device_parents.c.device_id, list(device_ids)))
    )


def _goes_round(conn: Connection, ids: Sequence[int]) -> errors.InvalidInput:
    query = sa.select(devices.c.id, devices.c.name).where(in_list(devices.c.id, list(set(ids))))
    names: dict[int, str] = {key: name for key, name in conn.execute(query)}  # noqa: C416  typed
    return goes_round([names[each] for each in ids])


def goes_round(names: Sequence[str]) -> errors.InvalidInput:
    """Return the error for a chain of parents that goes round."""
    if len(names) == 2:
        text = f"{names[0]} would be its own parent"
        hint = "leave that device out, or give it another parent"
    else:
        text = f"the chain of parents goes round: {parent_chain.text(names)}"
        hint = f"first: poller device parent {names[1]} --none"
    return errors.InvalidInput(f"parent: {text}", hint=hint, field="parent")


_LISTED: sa.Select[Any] = sa.select(
    _device.c.id.label("device_id"),
    _device.c.name.label("device"),
    _parent.c.id.label("parent_id"),
    _parent.c.name.label("parent"),
    device_parents.c.source,
).select_from(
    device_parents.join(_device, device_parents.c.device_id == _device.c.id)
    .join(_parent, device_parents.c.parent_id == _parent.c.id)
    .outerjoin(sites, _device.c.site_id == sites.c.id)
)
