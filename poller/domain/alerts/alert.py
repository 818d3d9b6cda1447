"""An alert: one thing that is told, from the first sign to the end."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, field

from poller.domain.alerts.rule import Severity


class AlertState(enum.StrEnum):
    """Being suppressed is no state: monitoring goes on, and the end of an alert is never lost."""

    PENDING = "pending"  # the condition holds, but not for long enough
    FIRING = "firing"
    RESOLVED = "resolved"


@dataclass(frozen=True, slots=True)
class Subject:
    """The subject of an alert: a device, one of its targets, a series of it, a site, or the
    platform (`series` then names the part of it).
    """

    device_id: int | None = None
    target_id: int | None = None
    device: str = ""
    target: str = ""
    site: str = ""
    series: str = ""

    def identity(self, rule: str) -> str:
        """The text that is the same for the same thing, whatever it is called meanwhile."""
        if self.device_id is not None:
            return f"{rule}|device:{self.device_id}|{self.target_id or ''}|{self.series}"
        if self.site:
            return f"{rule}|site:{self.site}|{self.series}"
        return f"{rule}|platform|{self.series}"


@dataclass(frozen=True, slots=True)
class Acknowledgement:
    """A person works on it until an instant."""

    by: str
    note: str
    at_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One alert as it is stored. Instants are UTC milliseconds; 0: not yet.

    `suppressed_by` is "" or what holds it back: `site:NAME`, `alert:ID`, `maintenance:ID` or
    `paused`.
    """

    id: int = 0
    rule: str  # the name of the rule
    severity: Severity
    subject: Subject
    state: AlertState
    since_ms: int  # when the condition began
    seen_ms: int  # when the condition was last known to hold
    gone_ms: int = 0  # since when it does not hold, while the alert is still kept
    fired_ms: int = 0
    resolved_ms: int = 0
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    text: str = ""
    suppressed_by: str = ""
    held_until_ms: int = 0  # it does not fire before, unless its parent is known to be well
    acknowledged: Acknowledgement | None = None
    flaps: int = 0  # times that it fired within the last hour of flapping
    damped_until_ms: int = 0  # it flaps: no further notice before

    @property
    def is_open(self) -> bool:
        return self.state is not AlertState.RESOLVED
