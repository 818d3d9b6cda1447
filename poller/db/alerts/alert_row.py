"""An alert as a row of the table `alerts`, and back."""

from __future__ import annotations

import hashlib
from dataclasses import asdict
from typing import Any

from sqlalchemy.engine import Row

from poller.domain.alerts.alert import Acknowledgement, Alert, AlertState, Subject
from poller.domain.alerts.rule import Severity

_SAME_FIELDS = (
    *("rule", "text", "value", "since_ms", "seen_ms", "gone_ms", "fired_ms", "resolved_ms"),
    *("suppressed_by", "held_until_ms", "flaps", "damped_until_ms"),
)
_SUBJECT_FIELDS = ("device_id", "target_id", "device", "target", "site", "series")


def open_key(identity: str) -> str:
    """Return the unique text of an alert that is open."""
    return hashlib.sha256(identity.encode()).hexdigest()


def to_values(alert: Alert) -> dict[str, Any]:
    """Return the columns of an alert, without its id."""
    identity = alert.subject.identity(alert.rule)
    values = {name: getattr(alert, name) for name in _SAME_FIELDS}
    values |= {name: getattr(alert.subject, name) for name in _SUBJECT_FIELDS}
    acknowledged = alert.acknowledged
    return {
        **values,
        "identity": identity,
        "open_key": open_key(identity) if alert.is_open else None,
        "severity": alert.severity.value,
        "state": alert.state.value,
        "labels": dict(alert.labels),
        "acknowledged": asdict(acknowledged) if acknowledged else None,
    }


def to_alert(row: Row[Any]) -> Alert:
    """Return the alert of a row."""
    acknowledged = row.acknowledged
    return Alert(
        id=row.id,
        severity=Severity(row.severity),
        state=AlertState(row.state),
        subject=Subject(**{name: getattr(row, name) for name in _SUBJECT_FIELDS}),
        labels=dict(row.labels),
        acknowledged=Acknowledgement(**acknowledged) if acknowledged else None,
        **{name: getattr(row, name) for name in _SAME_FIELDS},
    )
