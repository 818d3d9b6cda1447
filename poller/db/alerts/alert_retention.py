"""Delete alerts that ended long ago, with all that belongs to them, in bounded steps."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts.alert_tables import (
    alert_changes,
    alert_tellings,
    alerts,
    deliveries,
    maintenances,
)
from poller.db.in_list import in_list

#: Rows that one step deletes at most, of each table.
CHUNK = 1_000

Rest = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class AlertsPruned:
    """Numbers of deleted rows."""

    alerts: int = 0
    deliveries: int = 0
    maintenances: int = 0


def prune(engine: Engine, before_ms: int, rest: Rest, until_mono: float) -> AlertsPruned:
    """Delete alerts, deliveries and maintenances that ended before this instant. Idempotent.

    After each step the pass rests as long as the step took. Raises StoreError.
    """
    of = {"before_ms": before_ms}
    return AlertsPruned(
        alerts=_delete(engine, _ALERTS, of, _drop_alerts, rest, until_mono),
        deliveries=_delete(engine, _DELIVERIES, of, _drop_deliveries, rest, until_mono),
        maintenances=_delete(engine, _MAINTENANCES, of, _drop_maintenances, rest, until_mono),
    )


def _delete(
    engine: Engine,
    old: sa.Select[tuple[int]],
    of: dict[str, int],
    drop: Callable[[Sequence[int]], Sequence[sa.Delete]],
    rest: Rest,
    until_mono: float,
) -> int:
    deleted = 0
    while time.monotonic() < until_mono:
        started_mono = time.monotonic()
        with sql.writing(engine) as conn:
            ids = [row.id for row in conn.execute(old.limit(CHUNK), of)]
            for statement in drop(ids) if ids else ():
                conn.execute(statement)
        deleted += len(ids)
        if len(ids) < CHUNK:
            break
        rest(time.monotonic() - started_mono)
    return deleted


def _drop_alerts(ids: Sequence[int]) -> Sequence[sa.Delete]:
    return (
        sa.delete(alert_changes).where(in_list(alert_changes.c.alert_id, ids)),
        sa.delete(alert_tellings).where(in_list(alert_tellings.c.alert_id, ids)),
        sa.delete(alerts).where(in_list(alerts.c.id, ids)),
    )


def _drop_deliveries(ids: Sequence[int]) -> Sequence[sa.Delete]:
    return (sa.delete(deliveries).where(in_list(deliveries.c.id, ids)),)


def _drop_maintenances(ids: Sequence[int]) -> Sequence[sa.Delete]:
    return (sa.delete(maintenances).where(in_list(maintenances.c.id, ids)),)


_BEFORE = sa.bindparam("before_ms", type_=sa.BigInteger)
_ALERTS = (
    sa.select(alerts.c.id)
    .where(alerts.c.resolved_ms > 0, alerts.c.resolved_ms < _BEFORE)
    .order_by(alerts.c.resolved_ms)
)
_DELIVERIES = (
    sa.select(deliveries.c.id)
    .where(deliveries.c.created_ms < _BEFORE, deliveries.c.ended_ms > 0)
    .order_by(deliveries.c.created_ms)
)
_MAINTENANCES = (
    sa.select(maintenances.c.id)
    .where(maintenances.c.ends_ms < _BEFORE)
    .order_by(maintenances.c.ends_ms)
)
