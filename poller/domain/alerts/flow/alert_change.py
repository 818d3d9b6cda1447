"""What happened to an alert, as its history shows it: the difference of two states of it."""

from __future__ import annotations

import enum
from collections.abc import Iterator
from dataclasses import dataclass

from poller.domain.alerts.alert import Alert, AlertState
from poller.domain.alerts.flow import flap_damping
from poller.domain.inventory import duration


class ChangeKind(enum.StrEnum):
    """Changes that the platform makes by itself; those of people have kinds of their own."""

    FIRED = "fired"
    FLAPPING = "flapping"
    SUPPRESSED = "suppressed"
    UNSUPPRESSED = "unsuppressed"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class AlertChange:
    """One row of an alert's history."""

    alert_id: int
    at_ms: int
    kind: ChangeKind
    text: str


def changes(before: Alert, after: Alert, now_ms: int, reason: str = "") -> Iterator[AlertChange]:
    """Yield what happened between two states of an alert, in the order of a history."""

    def change(kind: ChangeKind, text: str) -> AlertChange:
        return AlertChange(after.id, now_ms, kind, text)

    if after.suppressed_by != before.suppressed_by:
        if after.suppressed_by:
            yield change(ChangeKind.SUPPRESSED, f"covered by {after.suppressed_by}")
        else:
            yield change(ChangeKind.UNSUPPRESSED, f"no longer covered by {before.suppressed_by}")
    if after.fired_ms and not before.fired_ms:
        yield change(ChangeKind.FIRED, after.text)
        if after.flaps >= flap_damping.FIRINGS:
            text = f"fired {after.flaps} times within an hour: it stays open until it is quiet"
            yield change(ChangeKind.FLAPPING, text)
    if after.state is AlertState.RESOLVED and before.state is not AlertState.RESOLVED:
        lasted = duration.rounded_text(max(0, after.gone_ms - after.since_ms))
        yield change(ChangeKind.RESOLVED, reason or f"over after {lasted}")


def is_stored_anew(before: Alert, after: Alert) -> bool:
    """Whether a difference is worth a write; numbers that move with every poll are not."""
    return before is not after and _lasting(before) != _lasting(after)


def _lasting(alert: Alert) -> tuple[object, ...]:
    subject = alert.subject
    return (
        *(alert.state, alert.severity, alert.gone_ms, alert.since_ms, alert.suppressed_by),
        *(alert.held_until_ms, alert.flaps, alert.damped_until_ms),
        *(subject.device, subject.target, subject.site),
    )
