"""The worst outcome of runs by device and slot of time, counted by the database."""

from __future__ import annotations

from collections.abc import Collection

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import runs, targets
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS, SlotCount


def of_devices(
    engine: Engine, device_ids: Collection[int], since_ms: int
) -> dict[int, list[SlotCount]]:
    """Return the slots of each device that have runs since an instant. Raises StoreError.

    The rows are found by the key of the ledger: one stretch for each target.
    """
    found: dict[int, list[SlotCount]] = {}
    parameters = {"ids": list(device_ids), "since": since_ms}
    with sql.single_read(engine) as conn:
        for row in conn.execute(_SLOTS, parameters):
            found.setdefault(row.device_id, []).append(SlotCount(int(row.slot), int(row.worst)))
    return found


_slot = runs.c.plan_ms.op("/")(sa.literal_column(str(SLOT_MS)))
_worst = sa.func.max(
    sa.case(
        (runs.c.outcome == Result.OK, 0),
        (runs.c.outcome == Result.PARTIAL, 1),
        else_=2,
    )
)
_SLOTS = (
    sa.select(targets.c.device_id, _slot.label("slot"), _worst.label("worst"))
    .join_from(targets, runs, runs.c.target_id == targets.c.id)
    .where(
        in_list(targets.c.device_id, "ids"),
        runs.c.plan_ms >= sa.bindparam("since"),
        runs.c.outcome.in_((Result.OK, Result.PARTIAL, Result.FAILED, Result.REFUSED)),
    )
    .group_by(targets.c.device_id, sa.text("slot"))
)
