"""What the fleet writes into the tables of history: the newest rows of each, by their sizes."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.tables import devices, history_1h, history_5m, history_blocks, readings, targets
from poller.domain.history.size_estimate import FleetWrites, Written
from poller.domain.sizing.measured_figures import FRESH_VALUE_BYTES

#: Rows of each table that are looked at.
NEWEST = 5_000
_DAY_MS = 86_400_000


def of_fleet(engine: Engine) -> FleetWrites:
    """Return what the fleet writes, from its plan and its newest rows. Raises StoreError."""
    with sql.reading(engine) as conn:
        plan = conn.execute(_PLAN).one()
        fresh = conn.execute(_newest(readings.c.at_ms, readings.c["values"])).one()
        blocks = conn.execute(
            _newest(history_blocks.c.end_ms, history_blocks.c.data, history_blocks.c.polls)
        ).one()
        return FleetWrites(
            devices=int(conn.execute(_DEVICES).scalar() or 0),
            targets=int(plan.targets),
            polls_a_day=float(plan.polls or 0),
            fresh=Written(
                rows=fresh.rows,
                data_bytes=int(fresh.bytes or 0),
                polls=fresh.rows,
                values=round(int(fresh.bytes or 0) / FRESH_VALUE_BYTES.value),
            ),
            blocks=Written(blocks.rows, int(blocks.bytes or 0), int(blocks.polls or 0)),
            five_minutes=_rollups(conn, history_5m),
            hours=_rollups(conn, history_1h),
        )


def _rollups(conn: Connection, table: sa.Table[Any]) -> Written:
    row = conn.execute(_newest(table.c.start_ms, table.c.data)).one()
    return Written(row.rows, int(row.bytes or 0))


def _newest(
    instant: sa.ColumnElement[Any],
    data: sa.ColumnElement[Any],
    polls: sa.ColumnElement[Any] | None = None,
) -> sa.Select[Any, Any, Any]:
    """Return the statement that adds up the newest rows of a table."""
    columns = [sa.func.length(data).label("size")]
    columns.append((sa.literal(0) if polls is None else polls).label("polls"))
    rows = sa.select(*columns).order_by(instant.desc()).limit(NEWEST).subquery()
    return sa.select(
        sa.func.count().label("rows"),
        sa.func.sum(rows.c.size).label("bytes"),
        sa.func.sum(rows.c.polls).label("polls"),
    ).select_from(rows)


_DEVICES = sa.select(sa.func.count()).select_from(devices).where(devices.c.enabled)
_PLAN = (
    sa.select(
        sa.func.count().label("targets"),
        sa.func.sum(float(_DAY_MS) / targets.c.interval_ms).label("polls"),
    )
    .select_from(targets.join(devices, targets.c.device_id == devices.c.id))
    .where(targets.c.enabled, devices.c.enabled)
)
