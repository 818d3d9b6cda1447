"""Alerts as lines of a table: on their own page and on that of a device."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import quote, urlencode

from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.rule import Severity
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.alerts.shown_alerts import ShownAlert

_TONES = {
    Severity.CRITICAL: Tone.FAILING,
    Severity.WARNING: Tone.LATE,
    Severity.INFO: Tone.UNKNOWN,
}


@dataclass(frozen=True, slots=True)
class Cover:
    """The cover that holds an alert back, and the page that shows it; no path for none."""

    text: str
    path: str = ""


@dataclass(frozen=True, slots=True)
class AlertLine:
    """One alert. Paths are below the root of the site."""

    id: int
    tone: str
    state: str  # `firing for 4 m 2 s`
    severity: str
    text: str
    about: str
    about_path: str
    site: str
    rule: str
    since: str
    cover: Cover | None
    note: str  # who works on it, and whether it flaps
    is_open: bool

    @property
    def path(self) -> str:
        return f"alerts/{self.id}"


def line(alert: ShownAlert) -> AlertLine:
    """Return the line of an alert."""
    return AlertLine(
        id=alert.id,
        tone=tone(alert),
        state=state(alert),
        severity=alert.severity,
        text=alert.text or alert.rule,
        about=alert.about,
        about_path=_about_path(alert),
        site=alert.site,
        rule=alert.rule,
        since=instant(alert.since),
        cover=cover(alert.suppressed_by),
        note=_note(alert),
        is_open=alert.state != AlertState.RESOLVED,
    )


def lines(found: Sequence[ShownAlert]) -> list[AlertLine]:
    """Return the lines of alerts, in their order."""
    return [line(each) for each in found]


def tone(alert: ShownAlert) -> str:
    """The tone of an alert: that of its severity until it is over."""
    is_over = alert.state == AlertState.RESOLVED
    return str(Tone.OK if is_over else _TONES[Severity(alert.severity)])


def state(alert: ShownAlert) -> str:
    """The state of an alert with its length: `firing for 4 m 2 s`."""
    lasted = formatting.age(alert.lasted_seconds * 1000)
    if alert.state == AlertState.RESOLVED:
        return f"over after {lasted}"
    return f"{alert.state} for {lasted}"


def cover(suppressed_by: str) -> Cover | None:
    """Return what covers an alert, in words; None for nothing."""
    if not suppressed_by:
        return None
    kind, _, name = suppressed_by.partition(":")
    if kind == "site":
        return Cover(f"site {name} is dark", site_path(name))
    if kind == "alert":
        return Cover(f"alert {name}", f"alerts/{name}")
    if kind == "maintenance":
        return Cover(f"maintenance {name}", f"maintenance#maintenance-{name}")
    return Cover(kind)


def site_path(site: str) -> str:
    """The list of the devices of a site."""
    where = target_filter.text(TargetFilter(sites=(site,)))
    return f"devices?{urlencode({'where': where})}"


def device_path(device: str) -> str:
    """The page of a device."""
    return f"devices/{quote(device, safe='')}"


def instant(at: datetime | None) -> str:
    """An instant as pages write it; "" for none."""
    return at.strftime("%Y-%m-%dT%H:%M:%SZ") if at else ""


def _about_path(alert: ShownAlert) -> str:
    if alert.device:
        return device_path(alert.device)
    return site_path(alert.site) if alert.site else ""


def _note(alert: ShownAlert) -> str:
    words = []
    if alert.acknowledged_by:
        until = instant(alert.acknowledged_until)[:16].replace("T", " ")
        note = f": {alert.acknowledged_note}" if alert.acknowledged_note else ""
        words.append(f"acknowledged by {alert.acknowledged_by} until {until}{note}")
    if alert.flapping:
        words.append("flapping")
    return "; ".join(words)
