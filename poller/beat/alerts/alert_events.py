"""Events of alerts that fired and ended."""

from __future__ import annotations

from collections.abc import Iterator

from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow.alert_change import AlertChange, ChangeKind
from poller.domain.alerts.flow.keeping import Kept
from poller.domain.failures.outcome import clean
from poller.domain.record.event_kinds import Event, Kind

_KINDS = {ChangeKind.FIRED: Kind.ALERT_FIRED, ChangeKind.RESOLVED: Kind.ALERT_RESOLVED}


def of_pass(kept: Kept) -> Iterator[Event]:
    """Yield the events of one pass. An event of a covered alert says what covers it."""
    alerts = {alert.id: alert for alert in kept.written}
    for change in kept.changes:
        if change.kind in _KINDS:
            yield _event(_KINDS[change.kind], alerts[change.alert_id], change)


def _event(kind: Kind, alert: Alert, change: AlertChange) -> Event:
    subject = alert.subject
    message = f"{alert.rule}: {alert.text}"
    if kind is Kind.ALERT_RESOLVED:
        message = f"{message}: {change.text}"
    return Event(
        at_ms=change.at_ms,
        kind=kind,
        message=message,
        device=subject.device,
        target=subject.target,
        device_id=subject.device_id,
        target_id=subject.target_id,
        data={
            "alert": alert.id,
            "rule": alert.rule,
            "severity": alert.severity.value,
            "site": subject.site,
            "series": subject.series,
            "suppressed_by": alert.suppressed_by,
        },
    )


def refused(alert: Alert, reason: str, now_ms: int) -> Event:
    """Return the event of an alert that the database does not take. All its texts are cleaned: one
    of them may be the reason.
    """
    subject = alert.subject
    about = " ".join(filter(None, (subject.device or subject.site, subject.target, subject.series)))
    message = f"{alert.rule}: the alert of {about or 'poller'} cannot be stored: {reason}"
    return Event(
        at_ms=now_ms,
        kind=Kind.ALERT_REFUSED,
        message=_sendable(message),
        device=_sendable(subject.device),
        target=_sendable(subject.target),
        device_id=subject.device_id,
        target_id=subject.target_id,
        data={"rule": alert.rule, "series": _sendable(subject.series)},
    )


def _sendable(text: str) -> str:
    return clean(text.encode(errors="replace").decode())
