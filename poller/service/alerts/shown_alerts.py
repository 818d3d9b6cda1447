"""Alerts with names, ages and links, for CLI, API and pages."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from poller.db.alerts.alert_listing import AlertCount, StoredChange, Telling
from poller.domain.alerts.alert import Acknowledgement, Alert, AlertState
from poller.presentation import formatting


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


@dataclass(frozen=True, slots=True)
class AlertNumbers:
    """The open alerts in numbers."""

    firing: int
    pending: int
    suppressed: int
    by_severity: Mapping[str, int]  # of the firing ones that are not suppressed

    @property
    def sentence(self) -> str:
        """`2 alerts firing (1 critical), 1 pending, 1,998 suppressed`; "" for none."""
        parts = []
        if self.firing:
            critical = self.by_severity.get("critical", 0)
            severe = f" ({formatting.exact(critical)} critical)" if critical else ""
            parts.append(f"{formatting.counted(self.firing, 'alert')} firing{severe}")
        if self.pending:
            parts.append(f"{formatting.exact(self.pending)} pending")
        if self.suppressed:
            parts.append(f"{formatting.exact(self.suppressed)} suppressed")
        return ", ".join(parts)


def alert(of: Alert, now_ms: int, web_url: str = "") -> ShownAlert:
    """Return an alert as people and programs see it."""
    subject = of.subject
    acknowledged = valid_acknowledgement(of, now_ms)
    ended_ms = of.resolved_ms or now_ms
    return ShownAlert(
        id=of.id,
        rule=of.rule,
        severity=of.severity.value,
        state=of.state.value,
        about=about(of),
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


def about(of: Alert) -> str:
    """Return what an alert is about: `sw1/snmp ifName=eth0`, `site fra` or `platform sql`."""
    subject = of.subject
    names = "/".join(name for name in (subject.device, subject.target) if name)
    if not names:
        names = f"site {subject.site}" if subject.site else "platform"
    return " ".join(part for part in (names, subject.series) if part)


def sentence(of: Alert) -> str:
    """Return `alert 12 (critical, firing since 2026-11-18T12:00:00Z): sw1 is unreachable`."""
    at_ms = of.fired_ms or of.since_ms
    state = f"{of.severity.value}, {of.state.value} since {formatting.instant(at_ms)}"
    by = f", suppressed by {of.suppressed_by}" if of.suppressed_by else ""
    return f"alert {of.id} ({state}{by}): {of.text or of.rule}"


def valid_acknowledgement(of: Alert, now_ms: int) -> Acknowledgement | None:
    """Return the acknowledgement of an alert, unless it ended."""
    given = of.acknowledged
    return given if given is not None and given.until_ms > now_ms else None


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


def numbers(counts: list[AlertCount]) -> AlertNumbers:
    """Return the open alerts in numbers."""
    firing = pending = suppressed = 0
    by_severity: dict[str, int] = {}
    for each in counts:
        if each.suppressed != "no":
            suppressed += each.number
        elif each.state == AlertState.FIRING:
            firing += each.number
            by_severity[each.severity] = by_severity.get(each.severity, 0) + each.number
        else:
            pending += each.number
    return AlertNumbers(firing, pending, suppressed, by_severity)


def _seconds(ms: int) -> int:
    return max(0, ms) // 1000
