"""Alerts that somebody may have to be told of, read for the notifier."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.alerts.alert_row import to_alert
from poller.db.alerts.alert_tables import alert_tellings, alerts, deliveries
from poller.db.in_list import in_list
from poller.db.tables import devices, sites, targets
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.telling import delivery
from poller.domain.alerts.telling.told import FIRST_ROUNDS, Telling, TellingKind

#: Ended alerts of one reading; the next reading has the others.
_MOST_ENDED = 5_000


@dataclass(frozen=True, slots=True)
class AlertFacts:
    """The facts that the filter of a route looks at: the device of an alert, and its target."""

    device: str
    address: str
    site: str
    tags: Sequence[str]
    collector: str = ""
    options: Mapping[str, Any] = field(default_factory=dict)


def firing(conn: Connection) -> list[Alert]:
    """The alerts that fire and that nothing suppresses."""
    query = (
        sa.select(alerts)
        .where(alerts.c.state == AlertState.FIRING.value, alerts.c.suppressed_by == "")
        .order_by(alerts.c.id)
    )
    return [to_alert(row) for row in conn.execute(query)]


def ended(conn: Connection, since_ms: int, short_since_ms: int | None) -> list[Alert]:
    """Alerts that ended since an instant and whose end somebody waits for, the oldest first.

    With `short_since_ms` also alerts that ended after it before anybody was told of them.
    """
    firing_told = alert_tellings.alias("firing_told")
    end_told = alert_tellings.alias("end_told")
    end_is_told = sa.exists().where(
        end_told.c.alert_id == firing_told.c.alert_id,
        end_told.c.route == firing_told.c.route,
        end_told.c.kind == TellingKind.RESOLVED.value,
    )
    is_awaited = sa.exists().where(
        firing_told.c.alert_id == alerts.c.id,
        firing_told.c.kind == TellingKind.FIRING.value,
        firing_told.c.round == 0,
        ~end_is_told,
    )
    wanted: sa.ColumnElement[bool] = is_awaited
    if short_since_ms is not None:
        never_told = ~sa.exists().where(firing_told.c.alert_id == alerts.c.id)
        is_short = sa.and_(
            alerts.c.resolved_ms >= short_since_ms,
            alerts.c.fired_ms > 0,
            alerts.c.suppressed_by == "",
            never_told,
        )
        wanted = sa.or_(is_awaited, is_short)
    query = (
        sa.select(alerts)
        .where(alerts.c.state == AlertState.RESOLVED.value, alerts.c.resolved_ms >= since_ms)
        .where(wanted)
        .order_by(alerts.c.id)
        .limit(_MOST_ENDED)
    )
    return [to_alert(row) for row in conn.execute(query)]


def told_firing(
    conn: Connection, routes: Collection[str], escalated_routes: Collection[str]
) -> list[Alert]:
    """The alerts that fire and that some routes were told of, suppressed meanwhile or not.

    Of `escalated_routes` only those that were escalated.
    """
    told = alert_tellings
    of_routes = sa.and_(told.c.kind == TellingKind.FIRING.value, told.c.route.in_(routes))
    of_escalated = sa.and_(
        told.c.kind == TellingKind.ESCALATION.value, told.c.route.in_(escalated_routes)
    )
    is_told = sa.exists().where(told.c.alert_id == alerts.c.id, sa.or_(of_routes, of_escalated))
    query = (
        sa.select(alerts)
        .where(alerts.c.state == AlertState.FIRING.value, is_told)
        .order_by(alerts.c.id)
    )
    return [to_alert(row) for row in conn.execute(query)]


def tellings(conn: Connection, alert_ids: Collection[int]) -> list[Telling]:
    """The tellings of these alerts: the first rounds and the newest one of each kind. An alert
    that fires for a year was told some thousand times.
    """
    told = alert_tellings
    of_alerts = in_list(told.c.alert_id, alert_ids)
    kind = (told.c.alert_id, told.c.route, told.c.kind)
    newest = (
        sa.select(*kind, sa.func.max(told.c.round).label("round"))
        .where(of_alerts)
        .group_by(*kind)
        .subquery()
    )
    is_of_kind = sa.and_(
        newest.c.alert_id == told.c.alert_id,
        newest.c.route == told.c.route,
        newest.c.kind == told.c.kind,
    )
    query = (
        sa.select(told, deliveries.c.key)
        .join(newest, is_of_kind)
        .outerjoin(deliveries, told.c.delivery_id == deliveries.c.id)
        .where(sa.or_(told.c.round < FIRST_ROUNDS, told.c.round == newest.c.round))
    )
    return [_telling(row) for row in conn.execute(query)]


def folded(conn: Connection) -> dict[str, int]:
    """How many open alerts each alert and each dark site stands for, by `suppressed_by`."""
    query = (
        sa.select(alerts.c.suppressed_by, sa.func.count().label("number"))
        .where(alerts.c.state.in_([AlertState.PENDING.value, AlertState.FIRING.value]))
        .where(alerts.c.suppressed_by != "")
        .group_by(alerts.c.suppressed_by)
    )
    return {row.suppressed_by: row.number for row in conn.execute(query)}


def facts(conn: Connection, found: Iterable[Alert]) -> dict[int, AlertFacts]:
    """The facts of the inventory about each alert's device and target, by the id of the alert.

    Alerts without a device, and those of a device that was removed, are not in it.
    """
    wanted = list(found)
    of_devices = _device_rows(conn, {alert.subject.device_id for alert in wanted} - {None})
    of_targets = _target_rows(conn, {alert.subject.target_id for alert in wanted} - {None})
    known = {}
    for alert in wanted:
        device = of_devices.get(alert.subject.device_id)
        if device is None:
            continue
        target = of_targets.get(alert.subject.target_id)
        known[alert.id] = AlertFacts(
            device=device.name,
            address=device.address,
            site=device.site or "",
            tags=device.tags,
            collector=target.collector if target else "",
            options=target.options if target else {},
        )
    return known


def _device_rows(conn: Connection, ids: Collection[Any]) -> dict[int | None, Any]:
    query = (
        sa.select(
            devices.c.id,
            devices.c.name,
            devices.c.address,
            devices.c.tags,
            sites.c.name.label("site"),
        )
        .outerjoin(sites, devices.c.site_id == sites.c.id)
        .where(in_list(devices.c.id, ids))
    )
    return {row.id: row for row in conn.execute(query)} if ids else {}


def _target_rows(conn: Connection, ids: Collection[Any]) -> dict[int | None, Any]:
    columns = (targets.c.id, targets.c.collector, targets.c.options)
    query = sa.select(*columns).where(in_list(targets.c.id, ids))
    return {row.id: row for row in conn.execute(query)} if ids else {}


def _telling(row: Any) -> Telling:
    return Telling(
        alert_id=row.alert_id,
        route=row.route,
        kind=TellingKind(row.kind),
        round=row.round,
        told_ms=row.told_ms,
        key=delivery.notice_key(row.key) if row.key else "",
    )
