"""Sites in SQL. The first device of a site creates it; an operator removes it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import devices, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import row_tag


@dataclass(frozen=True, slots=True)
class Site:
    name: str
    requires: Mapping[str, str]
    devices: int

    @property
    def tag(self) -> str:
        """The tag of the fields that people edit."""
        return row_tag.row_tag({"name": self.name, "requires": dict(self.requires)})


def listing(engine: Engine) -> list[Site]:
    with sql.single_read(engine) as conn:
        return [_site(row) for row in conn.execute(_SITES.order_by(sites.c.name))]


def targets_of(engine: Engine, name: str) -> tuple[int, dict[int, int]]:
    """Return the site's id and the intervals of its enabled targets; (0, {}) for a removed site."""
    with sql.single_read(engine) as conn:
        key = conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
        if key is None:
            return 0, {}
        enabled_here = sa.and_(devices.c.site_id == key, devices.c.enabled, targets.c.enabled)
        query = (
            sa.select(targets.c.id, targets.c.interval_ms)
            .join(devices, targets.c.device_id == devices.c.id)
            .where(enabled_here)
        )
        return int(key), {row.id: row.interval_ms for row in conn.execute(query)}


def show(engine: Engine, name: str) -> Site:
    """Return one site. Raises NotFound with the nearest name."""
    with sql.reading(engine) as conn:
        return _one(conn, _id(conn, name))


def edit(
    engine: Engine,
    name: str,
    requires: Mapping[str, str],
    author: Author = NOBODY,
    expected: str | None = None,
) -> Site:
    """Set the tags that workers need for this site. Every target of the site counts as changed.

    Raises NotFound, EditConflict if the site does not have the expected tag any more.
    """
    with inventory_feed.change(engine, author) as change:
        key = _id(change.conn, name)
        old = _one(change.conn, key)
        row_tag.refuse_changed("site", name, old.tag, expected)
        values = {"requires": dict(requires), "updated_at": change.now}
        change.conn.execute(sa.update(sites).where(sites.c.id == key).values(values))
        devices_here = sa.select(devices.c.id).where(devices.c.site_id == key)
        inventory_feed.stamp_targets(change, targets.c.device_id.in_(devices_here))
        new = _one(change.conn, key)
        change.record(audit_entry.differing("site.edit", name, asdict(old), asdict(new)))
        return new


def remove(engine: Engine, name: str, author: Author = NOBODY, expected: str | None = None) -> None:
    """Remove a site. Raises NotFound, EditConflict, InvalidInput while the site has devices."""
    with inventory_feed.change(engine, author) as change:
        key = _id(change.conn, name)
        count = sa.select(sa.func.count()).where(devices.c.site_id == key)
        used = change.conn.execute(count).scalar_one()
        if used:
            has = "a device" if used == 1 else f"{used} devices"
            hint = f"poller device list --site {name}"
            raise errors.InvalidInput(f'site "{name}" has {has}', hint=hint)
        old = _one(change.conn, key)
        row_tag.refuse_changed("site", name, old.tag, expected)
        change.conn.execute(sa.delete(sites).where(sites.c.id == key))
        change.record(AuditEntry("site.remove", name, before=asdict(old)))


def _one(conn: Connection, key: int) -> Site:
    return _site(conn.execute(_SITES.where(sites.c.id == key)).one())


def _site(row: Any) -> Site:
    return Site(name=row.name, requires=row.requires, devices=row.devices)


def _id(conn: Connection, name: str) -> int:
    found = conn.execute(sa.select(sites.c.id).where(sites.c.name == name)).scalar()
    if found is None:
        raise lookup.missing(conn, sites, name, "site", "poller site list")
    return int(found)


_SITES = sa.select(
    sites.c.name,
    sites.c.requires,
    sa.select(sa.func.count())
    .where(devices.c.site_id == sites.c.id)
    .scalar_subquery()
    .label("devices"),
)
