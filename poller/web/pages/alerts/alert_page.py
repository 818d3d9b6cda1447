"""The page of one alert as texts: what is wrong, what covers it, its history, who was told."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.alerts.alert import AlertState
from poller.presentation import formatting
from poller.service.alerts.alert_actions import AlertDetails
from poller.service.alerts.shown_alerts import ShownAlert, ShownChange, ShownTelling
from poller.web.pages.alerts import alert_lines
from poller.web.pages.alerts.alert_lines import Cover

#: How long a form proposes to be left in peace.
LENGTHS = ("1h", "4h", "8h", "1d", "3d", "7d")


@dataclass(frozen=True, slots=True)
class AlertView:
    """One alert, and the reason why the last form was refused."""

    as_of: str
    alert: ShownAlert
    tone: str
    cover: Cover | None
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
    return AlertView(
        as_of=formatting.instant(now_ms),
        alert=alert,
        tone=alert_lines.tone(alert),
        cover=alert_lines.cover(alert.suppressed_by),
        state=alert_lines.state(alert),
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
        "flapping": "yes: it is told once, and ends when it is quiet" if alert.flapping else "",
    }
    yield from ((name, text) for name, text in facts.items() if text)
    yield from sorted(alert.labels.items())
