"""Alerts in words: one alert in one sentence, and the open ones in numbers."""

from __future__ import annotations

from poller.domain.alerts.alert import Acknowledgement, Alert
from poller.domain.alerts.alert_numbers import AlertNumbers
from poller.domain.alerts.rule import Severity
from poller.presentation import formatting


def about(alert: Alert) -> str:
    """Return what an alert is about: `sw1/snmp ifName=eth0`, `site fra` or `platform sql`."""
    subject = alert.subject
    names = "/".join(name for name in (subject.device, subject.target) if name)
    if not names:
        names = f"site {subject.site}" if subject.site else "platform"
    return " ".join(part for part in (names, subject.series) if part)


def sentence(alert: Alert, now_ms: int) -> str:
    """Return `alert 12 (critical, firing for 4 m 2 s): sw1 is unreachable`."""
    words = [alert.severity.value, state(alert, now_ms)]
    if alert.suppressed_by:
        words.append(f"suppressed by {alert.suppressed_by}")
    given = valid_acknowledgement(alert, now_ms)
    if given is not None:
        words.append(f"acknowledged by {given.by}")
    text = alert.text or f"{alert.rule}: {about(alert)}"
    return f"alert {alert.id} ({', '.join(words)}): {text}"


def state(alert: Alert, now_ms: int) -> str:
    """Return `firing for 4 m 2 s`."""
    since_ms = alert.fired_ms or alert.since_ms
    return f"{alert.state.value} for {formatting.age((alert.resolved_ms or now_ms) - since_ms)}"


def valid_acknowledgement(alert: Alert, now_ms: int) -> Acknowledgement | None:
    """Return the acknowledgement of an alert, unless it ended."""
    given = alert.acknowledged
    return given if given is not None and given.until_ms > now_ms else None


def firing(numbers: AlertNumbers) -> str:
    """Return `2 alerts are firing (1 critical).`; "" for none."""
    if not numbers.firing:
        return ""
    are = "is" if numbers.firing == 1 else "are"
    return f"{formatting.counted(numbers.firing, 'alert')} {are} firing{_critical(numbers)}."


def in_words(numbers: AlertNumbers) -> str:
    """Return `2 firing (1 critical), 1 pending, 1,998 suppressed`; "" for none."""
    parts = []
    if numbers.firing:
        parts.append(f"{formatting.exact(numbers.firing)} firing{_critical(numbers)}")
    if numbers.pending:
        parts.append(f"{formatting.exact(numbers.pending)} pending")
    if numbers.suppressed:
        parts.append(f"{formatting.exact(numbers.suppressed)} suppressed")
    return ", ".join(parts)


def _critical(numbers: AlertNumbers) -> str:
    critical = numbers.by_severity.get(Severity.CRITICAL, 0)
    return f" ({formatting.exact(critical)} critical)" if critical else ""
