"""The open alerts in numbers, for status, pages and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.domain.alerts.alert import AlertState

#: What may cover an alert, as the metric and the counts name it.
NOT_SUPPRESSED = "no"
COVERS = (NOT_SUPPRESSED, "site", "alert", "maintenance", "paused")


class AlertCount(NamedTuple):
    """The number of open alerts of a state and severity. `suppressed` is one of `COVERS`."""

    state: str
    severity: str
    suppressed: str
    number: int


@dataclass(frozen=True, slots=True)
class AlertNumbers:
    """The open alerts. Those that something covers are counted apart from the others."""

    firing: int = 0
    pending: int = 0
    suppressed: int = 0
    by_severity: Mapping[str, int] = field(default_factory=dict)  # of the firing ones
    counts: Sequence[AlertCount] = ()


def of_counts(counts: Sequence[AlertCount]) -> AlertNumbers:
    """Return the numbers of the counts."""
    firing = pending = suppressed = 0
    by_severity: dict[str, int] = {}
    for each in counts:
        if each.suppressed != NOT_SUPPRESSED:
            suppressed += each.number
        elif each.state == AlertState.FIRING:
            firing += each.number
            by_severity[each.severity] = by_severity.get(each.severity, 0) + each.number
        else:
            pending += each.number
    return AlertNumbers(firing, pending, suppressed, by_severity, tuple(counts))
