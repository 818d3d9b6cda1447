"""The whole inventory as a stream, device by device: what `device export` writes and `import` reads back."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.draft import DeviceDraft, TargetDraft

_ROWS_PER_FETCH = 2_000


def every_device(engine: Engine) -> Iterator[tuple[DeviceDraft, list[TargetDraft]]]:
    """Every device with its targets, by name, from one consistent snapshot."""
    with sql.reading(engine) as conn:
        rows = conn.execution_options(yield_per=_ROWS_PER_FETCH).execute(_EVERYTHING)
        for _, group in groupby(rows, key=lambda row: row[0]):
            lines: list[Any] = list(group)
            name, address, site, credential, tags, requires, enabled = lines[0][:7]
            device = DeviceDraft(name, address, site, credential, tuple(tags), requires, enabled)
            yield device, [TargetDraft(*line[7:]) for line in lines if line[7] is not None]


_own = credentials.alias("own")
_EVERYTHING = (
    sa.select(
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
    )
    .select_from(
        devices.outerjoin(sites, devices.c.site_id == sites.c.id)
        .outerjoin(credentials, devices.c.credential_id == credentials.c.id)
        .outerjoin(targets, targets.c.device_id == devices.c.id)
        .outerjoin(_own, targets.c.credential_id == _own.c.id)
    )
    .order_by(devices.c.name, targets.c.name)
)
