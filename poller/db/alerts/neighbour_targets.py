"""The targets that read the neighbours of devices: those with the module `lldp`, or one like it."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import devices, sites, targets


class NeighbourTarget(NamedTuple):
    """A target and its device."""

    target_id: int
    device_id: int
    device: str
    address: str
    site: str


def listing(engine: Engine, site: str | None = None) -> list[NeighbourTarget]:
    """Return the enabled targets, of one site or all, by id. Raises StoreError.

    A module of a file of one's own counts if its name has `lldp` or `cdp` in it.
    """
    options = sa.cast(targets.c.options, sa.Text)
    site_name = sa.func.coalesce(sites.c.name, "")
    query = (
        sa.select(
            targets.c.id, devices.c.id, devices.c.name, devices.c.address, site_name.label("site")
        )
        .select_from(
            targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
                sites, devices.c.site_id == sites.c.id
            )
        )
        .where(
            targets.c.collector == "snmp",
            targets.c.enabled,
            devices.c.enabled,
            sa.or_(options.like("%lldp%"), options.like("%cdp%")),
        )
        .order_by(targets.c.id)
    )
    if site is not None:
        query = query.where(site_name == site)
    with sql.single_read(engine) as conn:
        return [NeighbourTarget(*row) for row in conn.execute(query)]


class KnownDevice(NamedTuple):
    """A device that a neighbour may be."""

    id: int
    name: str
    address: str


def known_devices(engine: Engine, site: str | None = None) -> list[KnownDevice]:
    """Return all devices, of one site or of every one, by id. Raises StoreError."""
    query = sa.select(devices.c.id, devices.c.name, devices.c.address).order_by(devices.c.id)
    if site is not None:
        joined = devices.outerjoin(sites, devices.c.site_id == sites.c.id)
        is_there = sa.func.coalesce(sites.c.name, "") == site
        query = query.select_from(joined).where(is_there)
    with sql.single_read(engine) as conn:
        return [KnownDevice(*row) for row in conn.execute(query)]
