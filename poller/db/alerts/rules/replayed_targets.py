"""The targets whose history is judged again, with what an alert says of them."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import devices, sites, targets
from poller.domain.alerts.alert import Subject


@dataclass(frozen=True, slots=True)
class ReplayedTarget:
    """A target with its device. An adaptive one has a longest interval."""

    id: int
    device_id: int
    device: str
    name: str
    site: str
    options: Mapping[str, Any]
    interval_ms: int
    longest_interval_ms: int

    def subject(self, series: str = "") -> Subject:
        """Return the subject of an alert about the target, or about a series of it."""
        return Subject(self.device_id, self.id, self.device, self.name, self.site, series)

    def device_subject(self) -> Subject:
        """Return the subject of an alert about the whole device."""
        return Subject(device_id=self.device_id, device=self.device, site=self.site)


def load(engine: Engine, ids: Collection[int]) -> list[ReplayedTarget]:
    """Return these targets, by device and name. Raises StoreError."""
    query = _TARGETS.where(in_list(targets.c.id, list(ids)))
    with sql.single_read(engine) as conn:
        return [_target(row) for row in conn.execute(query)]


def _target(row: Any) -> ReplayedTarget:
    return ReplayedTarget(
        id=row.id,
        device_id=row.device_id,
        device=row.device,
        name=row.name,
        site=row.site or "",
        options=row.options,
        interval_ms=row.interval_ms,
        longest_interval_ms=max(row.interval_ms, row.max_ms or 0),
    )


_TARGETS = (
    sa.select(
        targets.c.id,
        targets.c.device_id,
        devices.c.name.label("device"),
        targets.c.name,
        sites.c.name.label("site"),
        targets.c.options,
        targets.c.interval_ms,
        targets.c.max_ms,
    )
    .select_from(
        targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
            sites, devices.c.site_id == sites.c.id
        )
    )
    .order_by(devices.c.name, targets.c.name)
)
