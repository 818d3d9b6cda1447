"""Targets with their device, site and credential, and the neighbours at their site, for `why`."""

from __future__ import annotations

import json
from collections.abc import Collection
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.inventory import inventory_feed, lookup
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.scheduling.interval import Policy
from poller.domain.why import required_tags
from poller.domain.why.target_facts import InventoryRow

#: Other devices of a site that are looked at. More are not needed to tell whether a site is up.
NEIGHBOURS = 100
#: Targets of these devices that are looked at.
_NEIGHBOUR_TARGETS = 500


class Neighbours(NamedTuple):
    """Targets of other devices at the same site, by device."""

    targets: dict[int, list[int]]
    is_sample: bool  # the site has more devices


NO_NEIGHBOURS = Neighbours({}, is_sample=False)


def of_device(engine: Engine, device: str, target: str | None = None) -> list[InventoryRow]:
    """Return all targets of a device, or the named one, by name. Raises NotFound, StoreError."""
    with sql.reading(engine) as conn:
        if target is None:
            device_id = lookup.device_id(conn, device)
            condition = targets.c.device_id == device_id
        else:
            condition = targets.c.id == lookup.target_id(conn, device, target)
        return _rows(conn, condition)


def by_ids(engine: Engine, ids: Collection[int]) -> list[InventoryRow]:
    """Return these targets by name, without removed ones. Raises StoreError."""
    with sql.reading(engine) as conn:
        return _rows(conn, in_list(targets.c.id, ids))


def neighbours(engine: Engine, site: str, device_id: int) -> Neighbours:
    """Return targets of other enabled devices at a site. Raises StoreError."""
    if not site:
        return NO_NEIGHBOURS
    with sql.reading(engine) as conn:
        values = {"site": site, "device_id": device_id}
        others = list(conn.execute(_OTHERS, values).scalars())
        found: dict[int, list[int]] = {}
        for row in conn.execute(_TARGETS_OF, {"device_ids": others[:NEIGHBOURS]}):
            found.setdefault(row.device_id, []).append(row.id)
    return Neighbours(found, is_sample=len(others) > NEIGHBOURS)


def _rows(conn: Connection, condition: sa.ColumnElement[bool]) -> list[InventoryRow]:
    query = _ROWS.where(condition).order_by(devices.c.name, targets.c.name)
    return [_row(row) for row in conn.execute(query)]


def _row(row: Any) -> InventoryRow:
    own_credential = row.target_credential or ""
    credential_of = "target" if own_credential else "device"
    credential = own_credential or row.device_credential or ""
    levels = (row.site_requires, row.device_requires, row.target_requires)
    queue = inventory_feed.routed_queue(row.collector, *levels)
    return InventoryRow(
        target_id=row.id,
        device_id=row.device_id,
        device=row.device,
        target=row.target,
        address=row.address,
        site=row.site,
        collector=row.collector,
        queue=queue,
        interval_ms=row.interval_ms,
        timeout_ms=row.timeout_ms,
        target_enabled=bool(row.target_enabled),
        device_enabled=bool(row.device_enabled),
        policy=Policy(row.policy),
        min_ms=row.min_ms,
        max_ms=row.max_ms,
        staleness=row.staleness,
        credential=credential,
        credential_of=credential_of if credential else "",
        options=dict(row.options),
        tags=tuple(row.tags),
        required=required_tags.of_levels(*(json.loads(text or "{}") for text in levels)),
    )


def _text(column: sa.Column[Any]) -> sa.Cast[str]:
    return sa.cast(column, sa.Text)


_own = credentials.alias("own")
_of_device = credentials.alias("of_device")
_ROWS = sa.select(
    targets.c.id,
    targets.c.device_id,
    devices.c.name.label("device"),
    targets.c.name.label("target"),
    devices.c.address,
    sa.func.coalesce(sites.c.name, "").label("site"),
    targets.c.collector,
    targets.c.interval_ms,
    targets.c.timeout_ms,
    targets.c.enabled.label("target_enabled"),
    devices.c.enabled.label("device_enabled"),
    targets.c.policy,
    targets.c.min_ms,
    targets.c.max_ms,
    targets.c.staleness,
    targets.c.options,
    devices.c.tags,
    _own.c.name.label("target_credential"),
    _of_device.c.name.label("device_credential"),
    _text(sites.c.requires).label("site_requires"),
    _text(devices.c.requires).label("device_requires"),
    _text(targets.c.requires).label("target_requires"),
).select_from(
    targets.join(devices, targets.c.device_id == devices.c.id)
    .outerjoin(sites, devices.c.site_id == sites.c.id)
    .outerjoin(_own, targets.c.credential_id == _own.c.id)
    .outerjoin(_of_device, devices.c.credential_id == _of_device.c.id)
)
_OTHERS = (
    sa.select(devices.c.id)
    .join(sites, devices.c.site_id == sites.c.id)
    .where(
        sites.c.name == sa.bindparam("site"),
        devices.c.id != sa.bindparam("device_id"),
        devices.c.enabled,
    )
    .limit(NEIGHBOURS + 1)
)
_TARGETS_OF = (
    sa.select(targets.c.id, targets.c.device_id)
    .where(in_list(targets.c.device_id, "device_ids"), targets.c.enabled)
    .limit(_NEIGHBOUR_TARGETS)
)
