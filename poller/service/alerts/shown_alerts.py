"""Alerts with names, ages and links, for CLI, API and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from poller.db.alerts.alert_listing import StoredChange, Telling
from poller.domain.alerts.alert import Alert
from poller.presentation import formatting
from poller.presentation.alerts import alert_sentences


@dataclass(frozen=True, slots=True)
class ShownAlert:
    """One alert. `about` is what it is about, in one text: `sw1/snmp ifName=eth0`."""

    id: int
    rule: str
    severity: str
    state: str
    about: str
    device: str
    target: str
    site: str
    series: str
    text: str
    value: float | None
    labels: Mapping[str, str]
    since: datetime | None
    since_seconds: int
    fired: datetime | None
    resolved: datetime | None
    lasted_seconds: int
    suppressed_by: str
    acknowledged_by: str
    acknowledged_note: str
    acknowledged_until: datetime | None
    flapping: bool
    url: str


@dataclass(frozen=True, slots=True)
class ShownChange:
    """One row of an alert's history. `actor` is "" for the platform."""

    at: datetime | None
    kind: str
    text: str
    actor: str


@dataclass(frozen=True, slots=True)
class ShownTelling:
    """Whom the platform told of an alert, and what became of it."""

    at: datetime | None
    route: str
    kind: str
    receiver: str
    state: str
    attempts: int
    answer: str


def alert(of: Alert, now_ms: int, web_url: str = "") -> ShownAlert:
    """Return an alert as people and programs see it."""
    subject = of.subject
    acknowledged = alert_sentences.valid_acknowledgement(of, now_ms)
    ended_ms = of.resolved_ms or now_ms
    return ShownAlert(
        id=of.id,
        rule=of.rule,
        severity=of.severity.value,
        state=of.state.value,
        about=alert_sentences.about(of),
        device=subject.device,
        target=subject.target,
        site=subject.site,
        series=subject.series,
        text=of.text,
        value=of.value,
        labels=of.labels,
        since=formatting.moment(of.since_ms),
        since_seconds=_seconds(now_ms - of.since_ms),
        fired=formatting.moment(of.fired_ms),
        resolved=formatting.moment(of.resolved_ms),
        lasted_seconds=_seconds(ended_ms - of.since_ms),
        suppressed_by=of.suppressed_by,
        acknowledged_by=acknowledged.by if acknowledged else "",
        acknowledged_note=acknowledged.note if acknowledged else "",
        acknowledged_until=formatting.utc(acknowledged.until_ms) if acknowledged else None,
        flapping=of.is_open and of.damped_until_ms > now_ms,
        url=f"{web_url.rstrip('/')}/alerts/{of.id}" if web_url else "",
    )


def change(of: StoredChange) -> ShownChange:
    """Return a row of a history as people and programs see it."""
    return ShownChange(formatting.moment(of.at_ms), of.kind, of.text, of.actor)


def telling(of: Telling) -> ShownTelling:
    """Return a telling as people and programs see it."""
    return ShownTelling(
        at=formatting.moment(of.told_ms),
        route=of.route,
        kind=of.kind,
        receiver=of.receiver,
        state=of.state,
        attempts=of.attempts,
        answer=of.answer,
    )


def _seconds(ms: int) -> int:
    return max(0, ms) // 1000
