"""Where targets and devices are: the site of each, and how many devices a site has."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import devices, sites, targets
from poller.domain.batched import batched

_CHUNK = 5_000


class Place(NamedTuple):
    """Where a target is. The site is "" for a device without one."""

    device_id: int
    site: str


def of_targets(engine: Engine, ids: Collection[int]) -> dict[int, Place]:
    """Return where these targets are, without removed ones. Raises StoreError."""
    found: dict[int, Place] = {}
    with sql.reading(engine) as conn:
        for chunk in batched(sorted(ids), _CHUNK):
            for row in conn.execute(_PLACES, {"ids": list(chunk)}):
                found[row.id] = Place(row.device_id, row.site)
    return found


def targets_of_devices(engine: Engine, device_ids: Collection[int]) -> list[int]:
    """Return the ids of all targets of some devices. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return list(conn.execute(_OF_DEVICES, {"ids": list(device_ids)}).scalars())


def site_names(engine: Engine) -> list[str]:
    """Return the names of all sites, in no order. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return list(conn.execute(sa.select(sites.c.name)).scalars())


def site_sizes(engine: Engine) -> dict[str, int]:
    """Return the number of devices of each site, also of devices without one. Raises StoreError."""
    with sql.reading(engine) as conn:
        found = {row.name: int(row.number) for row in conn.execute(_SIZES)}
        homeless = int(conn.execute(_HOMELESS).scalar_one())
    return found | {"": homeless} if homeless else found


_PLACES = (
    sa.select(targets.c.id, targets.c.device_id, sa.func.coalesce(sites.c.name, "").label("site"))
    .select_from(
        targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
            sites, devices.c.site_id == sites.c.id
        )
    )
    .where(in_list(targets.c.id, "ids"))
)
_numbers = (
    sa.select(devices.c.site_id, sa.func.count().label("number"))
    .where(devices.c.site_id.is_not(None))
    .group_by(devices.c.site_id)
    .subquery()
)
_SIZES = (
    sa.select(sites.c.name, sa.func.coalesce(_numbers.c.number, 0).label("number"))
    .select_from(sites.outerjoin(_numbers, _numbers.c.site_id == sites.c.id))
    .order_by(sites.c.name)
)
_HOMELESS = sa.select(sa.func.count()).select_from(devices).where(devices.c.site_id.is_(None))
_OF_DEVICES = sa.select(targets.c.id).where(in_list(targets.c.device_id, "ids"))
