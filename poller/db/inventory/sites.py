"""Sites: made on demand by their first device, kept until somebody removes them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import Notify
from poller.db.tables import devices, sites, targets


@dataclass(frozen=True, slots=True)
class Site:
    name: str
    requires: Mapping[str, str]
    devices: int


def listing(engine: Engine) -> list[Site]:
    with sql.peeking(engine) as conn:
        return [Site(*row) for row in conn.execute(_SITES.order_by(sites.c.name))]


def targets_of(engine: Engine, name: str) -> tuple[int, dict[int, int]]:
    """The site's number and its enabled targets with their intervals; (0, {}) when there is no such site any more."""
    with sql.peeking(engine) as conn:
        key = conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
        if key is None:
            return 0, {}
        of_site = sa.and_(devices.c.site_id == key, devices.c.enabled, targets.c.enabled)
        query = sa.select(targets.c.id, targets.c.interval_ms).join(
            devices, targets.c.device_id == devices.c.id
        )
        return int(key), {row.id: row.interval_ms for row in conn.execute(query.where(of_site))}


def edit(
    engine: Engine, name: str, requires: Mapping[str, str], notify: Notify | None = None
) -> Site:
    """Set what a worker must carry to poll this site; every target of the site counts as changed."""
    with inventory_feed.change(engine, notify) as at:
        key = _id(at.conn, name)
        values = {"requires": dict(requires), "updated_at": at.now}
        at.conn.execute(sa.update(sites).where(sites.c.id == key).values(values))
        of_site = sa.select(devices.c.id).where(devices.c.site_id == key)
        inventory_feed.stamp_targets(at, targets.c.device_id.in_(of_site))
        return Site(*at.conn.execute(_SITES.where(sites.c.id == key)).one())


def remove(engine: Engine, name: str, notify: Notify | None = None) -> None:
    """Refused while it has devices."""
    with inventory_feed.change(engine, notify) as at:
        key = _id(at.conn, name)
        used = at.conn.execute(
            sa.select(sa.func.count()).where(devices.c.site_id == key)
        ).scalar_one()
        if used:
            has = "a device" if used == 1 else f"{used} devices"
            raise errors.InvalidInput(
                f'site "{name}" has {has}', hint=f"poller device list --site {name}"
            )
        at.conn.execute(sa.delete(sites).where(sites.c.id == key))


def _id(conn: Connection, name: str) -> int:
    found = conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
    if found is None:
        raise lookup.missing(conn, sites, name, "site", "poller site list")
    return int(found)


_SITES = sa.select(
    sites.c.name,
    sites.c.requires,
    sa.select(sa.func.count()).where(devices.c.site_id == sites.c.id).scalar_subquery(),
)
