"""Maintenances and silences in SQL. Those that are over stay until they are pruned."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine, Row

from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.alerts import acknowledgements
from poller.db.alerts.alert_tables import alert_rules, maintenances
from poller.db.inventory import lookup
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.maintenance import Maintenance


@dataclass(frozen=True, slots=True)
class MaintenanceQuery:
    """Which maintenances, the newest first. `before_id` continues a page."""

    over: bool = False  # also those that are over
    limit: int = 50
    before_id: int | None = None


def current(engine: Engine, now_ms: int) -> list[Maintenance]:
    """Return all maintenances that are not over, in the order of their ids. Raises StoreError."""
    query = sa.select(maintenances).where(maintenances.c.ends_ms > now_ms)
    with sql.single_read(engine) as conn:
        return [_of_row(row) for row in conn.execute(query.order_by(maintenances.c.id))]


def page(engine: Engine, query: MaintenanceQuery, now_ms: int) -> list[Maintenance]:
    """Return maintenances, the newest first. Raises StoreError."""
    statement = sa.select(maintenances)
    if not query.over:
        statement = statement.where(maintenances.c.ends_ms > now_ms)
    if query.before_id is not None:
        statement = statement.where(maintenances.c.id < query.before_id)
    ordered = statement.order_by(maintenances.c.id.desc()).limit(query.limit)
    with sql.single_read(engine) as conn:
        return [_of_row(row) for row in conn.execute(ordered)]


def by_id(engine: Engine, maintenance_id: int) -> Maintenance | None:
    """Return one maintenance, over or not; None if there is none. Raises StoreError."""
    query = sa.select(maintenances).where(maintenances.c.id == maintenance_id)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).one_or_none()
    return _of_row(row) if row else None


def refuse_unknown_rule(engine: Engine, name: str) -> None:
    """Raise UnknownName, with the nearest name, for a rule that does not exist."""
    query = sa.select(alert_rules.c.id).where(alert_rules.c.name == name)
    with sql.reading(engine) as conn, lookup.unknown_name("rule"):
        if conn.execute(query).scalar() is None:
            raise lookup.missing(conn, alert_rules, name, "rule", "poller rules")


def add(
    engine: Engine,
    checked: Maintenance,
    actor: Actor,
    entry: AuditEntry,
    alert_id: int | None = None,
) -> int:
    """Store a checked maintenance with its audit row. Return its id. Raises StoreError.

    A silence is also a row in the history of its alert.
    """
    values = {name: value for name, value in asdict(checked).items() if name != "id"}
    insert = sa.insert(maintenances).values(values).returning(maintenances.c.id)
    at_ms = checked.created_ms
    with sql.writing(engine) as conn:
        stored_id = int(conn.execute(insert).scalar_one())
        if alert_id is not None:
            kind = acknowledgements.SILENCED
            acknowledgements.add_change(conn, alert_id, at_ms, kind, checked.reason, actor)
        audit_rows.append(conn, actor, [entry], at_ms)
    return stored_id


def end(engine: Engine, maintenance_id: int, now_ms: int, actor: Actor, entry: AuditEntry) -> bool:
    """End a maintenance now, with its audit row. Return False if it is over. Raises StoreError."""
    goes_on = sa.and_(maintenances.c.id == maintenance_id, maintenances.c.ends_ms > now_ms)
    update = sa.update(maintenances).where(goes_on).values(ends_ms=now_ms)
    with sql.writing(engine) as conn:
        if not conn.execute(update).rowcount:
            return False
        audit_rows.append(conn, actor, [entry], now_ms)
    return True


def _of_row(row: Row[Any]) -> Maintenance:
    return Maintenance(**row._mapping)
