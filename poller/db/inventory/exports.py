"""The whole inventory as a stream, device by device: what `device export` writes and `import` reads back."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.scheduling.interval import Policy

_ROWS_PER_FETCH = 2_000
_BY_BYTES = {"postgresql": "C", "sqlite": "BINARY"}


def every_device(engine: Engine) -> Iterator[tuple[DeviceDraft, list[TargetDraft]]]:
    """Every device with its targets, by name, from one consistent snapshot: in the same order on every server."""
    order = [
        sa.collate(name, _BY_BYTES[engine.dialect.name])
        for name in (devices.c.name, targets.c.name)
    ]
    with sql.reading(engine) as conn:
        rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(
            _EVERYTHING.order_by(*order)
        )
        for _, group in groupby(rows, key=lambda row: row[0]):
            lines: list[Any] = list(group)
            name, address, site, credential, tags, requires, enabled = lines[0][:7]
            device = DeviceDraft(name, address, site, credential, tuple(tags), requires, enabled)
            yield device, [_target(line[7:]) for line in lines if line[7] is not None]


def _target(columns: Any) -> TargetDraft:
    draft = TargetDraft(*columns)
    return replace(draft, policy=Policy(str(draft.policy)))


_own = credentials.alias("own")
_EVERYTHING = sa.select(
    devices.c.name,
    devices.c.address,
    sa.func.coalesce(sites.c.name, ""),
    sa.func.coalesce(credentials.c.name, ""),
    devices.c.tags,
    devices.c.requires,
    devices.c.enabled,
    targets.c.name,
    targets.c.collector,
    targets.c.options,
    sa.func.coalesce(_own.c.name, ""),
    targets.c.requires,
    targets.c.interval_ms,
    targets.c.timeout_ms,
    targets.c.enabled,
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
