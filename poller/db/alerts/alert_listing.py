"""Alerts as people look at them: lists by filter, one with its history, and counts."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.alerts import alert_row
from poller.db.alerts.alert_tables import alert_changes, alert_tellings, alerts, deliveries
from poller.db.in_list import in_list
from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.alert_numbers import NOT_SUPPRESSED, AlertCount

OPEN = (AlertState.PENDING, AlertState.FIRING)
#: Changes and tellings of one alert that are shown, the newest ones.
MOST_CHANGES = 500


@dataclass(frozen=True, slots=True)
class AlertsWanted:
    """A query for alerts. An empty field selects all; all fields must fit.

    `about` are the devices, targets and sites that a filter selects: an alert is about one of
    them. `site` is the one site of an actor.
    """

    states: Collection[str] = ()
    severities: Collection[str] = ()
    rules: Collection[str] = ()
    suppressed: bool | None = None
    since_ms: int = 0  # open then or later
    device_ids: Collection[int] | None = None
    target_ids: Collection[int] | None = None  # with device_ids: alerts of a target are of these
    sites: Collection[str] | None = None
    site: str | None = None
    before_id: int | None = None
    limit: int = 50


@dataclass(frozen=True, slots=True)
class StoredChange:
    """A row of an alert's history. The actor is "" for the platform."""

    at_ms: int
    kind: str
    text: str
    actor: str


@dataclass(frozen=True, slots=True)
class Telling:
    """A telling of an alert to a route, and the fate of its delivery."""

    told_ms: int
    route: str
    kind: str
    round: int
    receiver: str
    state: str
    attempts: int
    answer: str


def page(engine: Engine, wanted: AlertsWanted) -> list[Alert]:
    """Return alerts, the newest first. Raises StoreError."""
    query = sa.select(alerts).where(*_conditions(wanted))
    if wanted.before_id is not None:
        query = query.where(alerts.c.id < wanted.before_id)
    ordered = query.order_by(alerts.c.id.desc()).limit(wanted.limit)
    with sql.single_read(engine) as conn:
        return [alert_row.to_alert(row) for row in conn.execute(ordered)]


def by_id(engine: Engine, alert_id: int) -> Alert | None:
    """Return one alert, open or over; None if there is none. Raises StoreError."""
    query = sa.select(alerts).where(alerts.c.id == alert_id)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).one_or_none()
    return alert_row.to_alert(row) if row else None


def open_of_device(engine: Engine, device_id: int) -> list[Alert]:
    """Return the open alerts of a device and its targets, the oldest first. Raises StoreError."""
    is_open = in_list(alerts.c.state, [state.value for state in OPEN])
    query = sa.select(alerts).where(alerts.c.device_id == device_id, is_open)
    with sql.single_read(engine) as conn:
        rows = conn.execute(query.order_by(alerts.c.id).limit(MOST_CHANGES))
        return [alert_row.to_alert(row) for row in rows]


def changes(engine: Engine, alert_id: int) -> list[StoredChange]:
    """Return the history of an alert, the oldest first. Raises StoreError."""
    columns = (alert_changes.c.at_ms, alert_changes.c.kind, alert_changes.c.text)
    query = (
        sa.select(*columns, alert_changes.c.actor)
        .where(alert_changes.c.alert_id == alert_id)
        .order_by(alert_changes.c.id.desc())
        .limit(MOST_CHANGES)
    )
    with sql.single_read(engine) as conn:
        newest = [StoredChange(**row._mapping) for row in conn.execute(query)]
    return newest[::-1]


def tellings(engine: Engine, alert_id: int) -> list[Telling]:
    """Return whom the platform told of an alert, the oldest first. Raises StoreError."""
    query = (
        _TELLINGS.where(alert_tellings.c.alert_id == alert_id)
        .order_by(alert_tellings.c.told_ms.desc())
        .limit(MOST_CHANGES)
    )
    with sql.single_read(engine) as conn:
        newest = [Telling(**row._mapping) for row in conn.execute(query)]
    return newest[::-1]


def counts(engine: Engine, site: str | None = None) -> list[AlertCount]:
    """Return how many alerts are open, of one site or of all. Raises StoreError."""
    group = (alerts.c.state, alerts.c.severity, _SUPPRESSED)
    wanted = AlertsWanted(states=[state.value for state in OPEN], site=site)
    query = sa.select(*group, sa.func.count()).where(*_conditions(wanted)).group_by(*group)
    with sql.single_read(engine) as conn:
        return [AlertCount(*row) for row in conn.execute(query)]


def _conditions(wanted: AlertsWanted) -> list[sa.ColumnElement[bool]]:
    lists: Sequence[tuple[Any, Collection[str]]] = (
        (alerts.c.state, wanted.states),
        (alerts.c.severity, wanted.severities),
        (alerts.c.rule, wanted.rules),
    )
    conditions = [in_list(column, values) for column, values in lists if values]
    if wanted.suppressed is not None:
        is_suppressed = alerts.c.suppressed_by != ""
        conditions.append(is_suppressed if wanted.suppressed else ~is_suppressed)
    if wanted.since_ms:
        is_open = alerts.c.resolved_ms == 0
        conditions.append(sa.or_(is_open, alerts.c.resolved_ms >= wanted.since_ms))
    if wanted.site is not None:
        conditions.append(alerts.c.site == wanted.site)
    if wanted.sites is not None:
        conditions.append(in_list(alerts.c.site, wanted.sites))
    if wanted.device_ids is not None:
        conditions.append(in_list(alerts.c.device_id, wanted.device_ids))
    if wanted.target_ids is not None:
        of_device = alerts.c.target_id.is_(None)
        conditions.append(sa.or_(of_device, in_list(alerts.c.target_id, wanted.target_ids)))
    return conditions


#: `site` of `site:fra`: what suppresses an alert, or "no".
_SUPPRESSED = sa.case(
    (alerts.c.suppressed_by == "", NOT_SUPPRESSED),
    (alerts.c.suppressed_by.like("site:%"), "site"),
    (alerts.c.suppressed_by.like("alert:%"), "alert"),
    (alerts.c.suppressed_by.like("maintenance:%"), "maintenance"),
    else_="paused",
)
_TELLINGS = sa.select(
    alert_tellings.c.told_ms,
    alert_tellings.c.route,
    alert_tellings.c.kind,
    alert_tellings.c.round,
    sa.func.coalesce(deliveries.c.receiver, "").label("receiver"),
    sa.func.coalesce(deliveries.c.state, "").label("state"),
    sa.func.coalesce(deliveries.c.attempts, 0).label("attempts"),
    sa.func.coalesce(deliveries.c.answer, "").label("answer"),
).select_from(alert_tellings.outerjoin(deliveries, alert_tellings.c.delivery_id == deliveries.c.id))
