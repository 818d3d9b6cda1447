"""Stream the whole inventory, device by device, for `poller device export`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from operator import attrgetter
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts import parent_rows
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy

_ROWS_PER_FETCH = 2_000
_BY_BYTES = {"postgresql": "C", "sqlite": "BINARY"}


def every_device(
    engine: Engine, site: str | None = None
) -> Iterator[tuple[DeviceDraft, list[TargetDraft]]]:
    """Yield every device, or those of one site, by name with targets, from one snapshot.

    The order is that of bytes, so it is the same on every database.
    """
    collation = _BY_BYTES[engine.dialect.name]
    order = [sa.collate(name, collation) for name in (devices.c.name, targets.c.name)]
    with sql.reading(engine) as conn:
        stream = conn.execution_options(yield_per=_ROWS_PER_FETCH)
        query = _EVERYTHING if site is None else _EVERYTHING.where(sites.c.name == site)
        rows = stream.execute(query.order_by(*order))
        for _, group in groupby(rows, key=attrgetter("name")):
            lines: list[Any] = list(group)
            target_drafts = [_target(line) for line in lines if line.target is not None]
            yield _device(lines[0]), target_drafts


def _device(row: Any) -> DeviceDraft:
    return DeviceDraft(
        name=row.name,
        address=row.address,
        site=row.site,
        credential=row.credential,
        tags=tuple(row.tags),
        requires=row.requires,
        enabled=row.enabled,
        parent=row.parent,
    )


def _target(row: Any) -> TargetDraft:
    return TargetDraft(
        name=row.target,
        collector=row.collector,
        options=row.options,
        credential=row.target_credential,
        requires=row.target_requires,
        interval_ms=row.interval_ms,
        timeout_ms=row.timeout_ms,
        enabled=row.target_enabled,
        policy=Policy(row.policy),
        min_ms=row.min_ms,
        max_ms=row.max_ms,
        staleness=row.staleness,
    )


_own = credentials.alias("own")
_EVERYTHING = sa.select(
    devices.c.name,
    devices.c.address,
    sa.func.coalesce(sites.c.name, "").label("site"),
    sa.func.coalesce(credentials.c.name, "").label("credential"),
    devices.c.tags,
    devices.c.requires,
    devices.c.enabled,
    sa.func.coalesce(parent_rows.NAME, "").label("parent"),
    targets.c.name.label("target"),
    targets.c.collector,
    targets.c.options,
    sa.func.coalesce(_own.c.name, "").label("target_credential"),
    targets.c.requires.label("target_requires"),
    targets.c.interval_ms,
    targets.c.timeout_ms,
    targets.c.enabled.label("target_enabled"),
    targets.c.policy,
    targets.c.min_ms,
    targets.c.max_ms,
    targets.c.staleness,
).select_from(
    devices.outerjoin(sites, devices.c.site_id == sites.c.id)
    .outerjoin(credentials, devices.c.credential_id == credentials.c.id)
    .outerjoin(targets, targets.c.device_id == devices.c.id)
    .outerjoin(_own, targets.c.credential_id == _own.c.id)
)
