"""Alerts in SQL, as the keeper of alerts writes them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts import alert_row
from poller.db.alerts.alert_tables import alerts
from poller.domain.alerts.alert import Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity


def fire(engine: Engine, number: int, now_ms: int, **changes: Any) -> Alert:
    """Store an alert of a device that fires since now; returns it with its id."""
    values: dict[str, Any] = {
        "rule": "device-unreachable",
        "severity": Severity.CRITICAL,
        "subject": Subject(device_id=number, device=f"sw-{number}", site="fra"),
        "state": AlertState.FIRING,
        "since_ms": now_ms,
        "seen_ms": now_ms,
        "fired_ms": now_ms,
        "text": "no target responds",
    }
    made = Alert(**{**values, **changes})
    with sql.writing(engine) as conn:
        key = conn.execute(alerts.insert().values(alert_row.to_values(made))).inserted_primary_key
    assert key is not None
    return replace(made, id=int(key[0]))


def store(engine: Engine, alert: Alert, **changes: Any) -> Alert:
    """Change an alert in SQL; returns it as it is now."""
    changed = replace(alert, **changes)
    with sql.writing(engine) as conn:
        values = alert_row.to_values(changed)
        conn.execute(alerts.update().where(alerts.c.id == alert.id).values(values))
    return changed


def resolve(engine: Engine, alert: Alert, now_ms: int, **changes: Any) -> Alert:
    """End an alert in SQL."""
    return store(engine, alert, state=AlertState.RESOLVED, resolved_ms=now_ms, **changes)


def count(engine: Engine, table: Any) -> int:
    """The number of rows of a table."""
    with sql.single_read(engine) as conn:
        return int(conn.execute(sa.select(sa.func.count()).select_from(table)).scalar_one())
