"""Events of alerts that fired and ended."""

from __future__ import annotations

from collections.abc import Iterator

from poller.domain.alerts.alert import Alert
from poller.domain.alerts.flow.alert_change import AlertChange, ChangeKind
from poller.domain.alerts.flow.keeping import Kept
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
