"""What the leader must know of devices to keep their alerts: read for those that alert, never for
the fleet.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.alerts.alert_tables import device_parents
from poller.db.in_list import in_list
from poller.db.tables import devices, jobs, sites, targets
from poller.domain.alerts.flow.known_device import LONGEST_CHAIN, KnownDevice, KnownTarget
from poller.domain.jobs import told_state


def known(engine: Engine, device_ids: Collection[int]) -> dict[int, KnownDevice]:
    """Return these devices and all their parents, without removed ones. Raises StoreError."""
    found: dict[int, KnownDevice] = {}
    with sql.reading(engine) as conn:
        wanted = set(device_ids)
        for _ in range(LONGEST_CHAIN + 1):
            wanted -= found.keys()
            if not wanted:
                break
            page = _page(conn, wanted)
            found |= page
            wanted = {each.parent_id for each in page.values() if each.parent_id is not None}
    return found


def devices_of(engine: Engine, target_ids: Collection[int]) -> dict[int, int]:
    """Return the device of each of these targets that exists. Raises StoreError."""
    if not target_ids:
        return {}
    with sql.single_read(engine) as conn:
        rows = conn.execute(_DEVICE_OF, {"target_ids": list(target_ids)})
        return {row.id: row.device_id for row in rows}


def of_site(engine: Engine, site: str) -> list[int]:
    """Return the enabled devices of a site. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return list(conn.execute(_OF_SITE, {"site": site}).scalars())


def parents(engine: Engine, device_ids: Collection[int]) -> dict[int, int]:
    """Return the parents of devices, the parents of these, and so on. Raises StoreError."""
    found: dict[int, int] = {}
    with sql.reading(engine) as conn:
        wanted = set(device_ids)
        for _ in range(LONGEST_CHAIN):
            if not wanted:
                break
            rows = conn.execute(_PARENTS, {"device_ids": list(wanted)})
            page = {row.device_id: row.parent_id for row in rows}
            found |= page
            wanted = set(page.values()) - found.keys()
    return found


def job_names(engine: Engine) -> dict[str, bool]:
    """Return the names of all jobs, and whether each was told as overdue. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return {row.name: row.told == told_state.OVERDUE for row in conn.execute(_JOBS)}


def _page(conn: Connection, device_ids: Collection[int]) -> dict[int, KnownDevice]:
    ids = {"device_ids": list(device_ids)}
    of_device: dict[int, dict[int, KnownTarget]] = defaultdict(dict)
    for row in conn.execute(_TARGETS, ids):
        of_device[row.device_id][row.id] = _target(row)
    return {row.id: _device(row, of_device[row.id]) for row in conn.execute(_DEVICES, ids)}


def _device(row: Any, of_device: dict[int, KnownTarget]) -> KnownDevice:
    return KnownDevice(
        id=row.id,
        name=row.name,
        address=row.address,
        site=row.site or "",
        tags=tuple(row.tags),
        enabled=row.enabled,
        parent_id=row.parent_id,
        targets=of_device,
    )


def _target(row: Any) -> KnownTarget:
    return KnownTarget(
        id=row.id,
        name=row.name,
        collector=row.collector,
        interval_ms=row.max_ms or row.interval_ms,
        enabled=row.enabled,
        created_ms=round(row.created_at.timestamp() * 1000),
        options=row.options,
    )


_DEVICES = (
    sa.select(
        devices.c.id,
        devices.c.name,
        devices.c.address,
        devices.c.tags,
        devices.c.enabled,
        sites.c.name.label("site"),
        device_parents.c.parent_id,
    )
    .outerjoin(sites, sites.c.id == devices.c.site_id)
    .outerjoin(device_parents, device_parents.c.device_id == devices.c.id)
    .where(in_list(devices.c.id, "device_ids"))
)
_TARGETS = sa.select(
    targets.c.id,
    targets.c.device_id,
    targets.c.name,
    targets.c.collector,
    targets.c.interval_ms,
    targets.c.max_ms,
    targets.c.enabled,
    targets.c.created_at,
    targets.c.options,
).where(in_list(targets.c.device_id, "device_ids"))
_DEVICE_OF = sa.select(targets.c.id, targets.c.device_id).where(in_list(targets.c.id, "target_ids"))
_OF_SITE = (
    sa.select(devices.c.id)
    .join(sites, sites.c.id == devices.c.site_id)
    .where(sites.c.name == sa.bindparam("site"), devices.c.enabled)
)
_PARENTS = sa.select(device_parents.c.device_id, device_parents.c.parent_id).where(
    in_list(device_parents.c.device_id, "device_ids")
)
_JOBS = sa.select(jobs.c.name, jobs.c.told).where(jobs.c.gone_ms.is_(None))
