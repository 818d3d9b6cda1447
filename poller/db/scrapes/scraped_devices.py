"""Devices with their targets, found by names or addresses, for scrapes."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.scheduling import queue_routing


@dataclass(frozen=True, slots=True)
class ScrapedTarget:
    """A target as a scrape sees it. The credential is its own, or that of its device."""

    id: int
    name: str
    collector: str
    options: Mapping[str, Any]
    credential: str
    interval_ms: int
    timeout_ms: int
    enabled: bool


@dataclass(frozen=True, slots=True)
class ScrapedDevice:
    """A device and its targets. A worker must have the tags of `requires`."""

    id: int
    name: str
    address: str
    site: str
    credential: str
    requires: Mapping[str, str]
    targets: tuple[ScrapedTarget, ...] = ()


def find(engine: Engine, texts: Collection[str]) -> list[ScrapedDevice]:
    """Return the devices that have one of these names or addresses. Raises StoreError."""
    with sql.reading(engine) as conn:
        rows = conn.execute(_DEVICES, {"texts": list(texts)}).all()
        of_devices = conn.execute(_TARGETS, {"ids": [row.id for row in rows]}).all()
    by_device: dict[int, list[ScrapedTarget]] = {row.id: [] for row in rows}
    credential_of = {row.id: row.credential or "" for row in rows}
    for row in of_devices:
        credential = row.credential or credential_of[row.device_id]
        by_device[row.device_id].append(_target(row, credential))
    return [_device(row, tuple(by_device[row.id])) for row in rows]


def credential_ids(engine: Engine, names: Collection[str]) -> dict[str, tuple[int, str]]:
    """Return id and kind of the credentials of these names that exist. Raises StoreError."""
    query = sa.select(credentials.c.name, credentials.c.id, credentials.c.kind)
    with sql.single_read(engine) as conn:
        rows = conn.execute(query.where(in_list(credentials.c.name, list(names)))).all()
    return {row.name: (row.id, row.kind) for row in rows}


def _device(row: Any, of_device: tuple[ScrapedTarget, ...]) -> ScrapedDevice:
    return ScrapedDevice(
        id=row.id,
        name=row.name,
        address=row.address,
        site=row.site or "",
        credential=row.credential or "",
        requires=queue_routing.merge_requirements(row.site_requires or {}, row.requires),
        targets=of_device,
    )


def _target(row: Any, credential: str) -> ScrapedTarget:
    return ScrapedTarget(
        id=row.id,
        name=row.name,
        collector=row.collector,
        options=row.options,
        credential=credential,
        interval_ms=row.interval_ms,
        timeout_ms=row.timeout_ms,
        enabled=bool(row.enabled),
    )


_BY_NAME = sa.select(devices.c.id).where(in_list(devices.c.name, "texts"))
_BY_ADDRESS = sa.select(devices.c.id).where(in_list(devices.c.address, "texts"))
_DEVICES = (
    sa.select(
        devices.c.id,
        devices.c.name,
        devices.c.address,
        devices.c.requires,
        sites.c.name.label("site"),
        sites.c.requires.label("site_requires"),
        credentials.c.name.label("credential"),
    )
    .select_from(
        devices.outerjoin(sites, devices.c.site_id == sites.c.id).outerjoin(
            credentials, devices.c.credential_id == credentials.c.id
        )
    )
    .where(devices.c.id.in_(sa.union(_BY_NAME, _BY_ADDRESS)))
    .order_by(devices.c.id)
)
_TARGETS = (
    sa.select(
        targets.c.id,
        targets.c.name,
        targets.c.device_id,
        targets.c.collector,
        targets.c.options,
        targets.c.interval_ms,
        targets.c.timeout_ms,
        sa.and_(targets.c.enabled, devices.c.enabled).label("enabled"),
        credentials.c.name.label("credential"),
    )
    .select_from(
        targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
            credentials, targets.c.credential_id == credentials.c.id
        )
    )
    .where(in_list(targets.c.device_id, "ids"))
    .order_by(targets.c.id)
)
