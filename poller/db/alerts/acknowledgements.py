"""What people do with an alert, in SQL: the column `acknowledged`, which nobody else writes, and
rows of the alert's history.
"""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts.alert_tables import alert_changes, alerts
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.alert import Acknowledgement, AlertState

ACKNOWLEDGED = "acknowledged"
UNACKNOWLEDGED = "unacknowledged"
SILENCED = "silenced"


def acknowledge(
    engine: Engine, alert_id: int, given: Acknowledgement, actor: Actor, entry: AuditEntry
) -> bool:
    """Acknowledge an open alert. Return False if it is over. Raises StoreError."""
    with sql.writing(engine) as conn:
        if not _set(conn, alert_id, asdict(given)):
            return False
        add_change(conn, alert_id, given.at_ms, ACKNOWLEDGED, given.note, actor)
        audit_rows.append(conn, actor, [entry], given.at_ms)
    return True


def unacknowledge(
    engine: Engine, alert_id: int, now_ms: int, actor: Actor, entry: AuditEntry
) -> bool:
    """Take an acknowledgement back. Return False if the alert is over. Raises StoreError."""
    with sql.writing(engine) as conn:
        if not _set(conn, alert_id, sa.null()):
            return False
        add_change(conn, alert_id, now_ms, UNACKNOWLEDGED, "", actor)
        audit_rows.append(conn, actor, [entry], now_ms)
    return True


def add_change(
    conn: Connection, alert_id: int, at_ms: int, kind: str, text: str, actor: Actor
) -> None:
    """Append to the history of an alert what a person did."""
    values = {"alert_id": alert_id, "at_ms": at_ms, "kind": kind, "text": text}
    conn.execute(sa.insert(alert_changes).values(**values, actor=actor.name[:200]))


def _set(conn: Connection, alert_id: int, value: Any) -> bool:
    is_open = alerts.c.state != AlertState.RESOLVED.value
    update = sa.update(alerts).where(alerts.c.id == alert_id, is_open)
    return conn.execute(update.values(acknowledged=value)).rowcount > 0
