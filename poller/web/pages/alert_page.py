"""The page of one alert as texts: what is wrong, what covers it, its history, who was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.alerts.alert import AlertState
from poller.presentation import formatting
from poller.presentation.health import Tone
from poller.service.alerts.alert_actions import AlertDetails
from poller.service.alerts.shown_alerts import ShownAlert, ShownChange, ShownTelling

_TONES = {"critical": Tone.FAILING, "warning": Tone.LATE, "info": Tone.UNKNOWN}
#: How long a form proposes to be left in peace.
LENGTHS = ("1h", "4h", "8h", "1d", "3d", "7d")


@dataclass(frozen=True, slots=True)
class AlertView:
    """One alert, and the reason why the last form was refused."""

    as_of: str
    alert: ShownAlert
    tone: str
    state: str  # `firing for 4 m 2 s`
    facts: Sequence[tuple[str, str]]
    changes: Sequence[ShownChange]
    tellings: Sequence[ShownTelling]
    refused: str = ""
    hint: str = ""

    @property
    def lengths(self) -> Sequence[str]:
        return LENGTHS

    @property
    def is_open(self) -> bool:
        return self.alert.state != AlertState.RESOLVED


def build_view(
    details: AlertDetails, now_ms: int, refused: errors.PollerError | None = None
) -> AlertView:
    """Build the view of one alert."""
    alert = details.alert
    is_over = alert.state == AlertState.RESOLVED
    lasted = formatting.age(alert.lasted_seconds * 1000)
    return AlertView(
        as_of=formatting.instant(now_ms),
        alert=alert,
        tone=str(Tone.OK if is_over else _TONES[alert.severity]),
        state=f"over after {lasted}" if is_over else f"{alert.state} for {lasted}",
        facts=list(_facts(alert)),
        changes=details.changes,
        tellings=details.tellings,
        refused=f"{refused.message}." if refused else "",
        hint=refused.hint if refused else "",
    )


def _facts(alert: ShownAlert) -> Iterator[tuple[str, str]]:
    """The facts that are known, each with its name."""
    facts = {
        "rule": alert.rule,
        "severity": alert.severity,
        "device": alert.device,
        "target": alert.target,
        "series": alert.series,
        "site": alert.site,
        "value": "" if alert.value is None else formatting.significant(alert.value),
        "covered by": alert.suppressed_by,
        "flapping": "yes: it is told once, and ends when it is quiet" if alert.flapping else "",
    }
    yield from ((name, text) for name, text in facts.items() if text)
    yield from sorted(alert.labels.items())
