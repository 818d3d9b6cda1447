"""How many devices and targets use each collector."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import targets


class Usage(NamedTuple):
    """Devices with a target of a collector, and these targets. Disabled ones count too."""

    devices: int
    targets: int


def count(engine: Engine) -> dict[str, Usage]:
    """Count all targets by collector: one pass over them. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return {row.collector: Usage(row.devices, row.targets) for row in conn.execute(_COUNTED)}


_COUNTED = sa.select(
    targets.c.collector,
    sa.func.count(sa.distinct(targets.c.device_id)).label("devices"),
    sa.func.count().label("targets"),
).group_by(targets.c.collector)
