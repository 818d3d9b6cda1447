"""Rules: what is worth telling. `rule_form.py` makes them from YAML and JSON, and checks them."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.inventory.target_filter import ANY, TargetFilter


class Severity(enum.StrEnum):
    """How urgent an alert is, the least urgent first."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"


class Measure(enum.StrEnum):
    """The part of a series that is compared with a threshold."""

    VALUE = "value"  # of a gauge
    RATE = "rate"  # of a counter, a second, by the verdict engine; no verdict, no judgement
    PERCENT_OF_SPEED = "percent_of_speed"  # a rate of octets, of what the link can carry


class PlatformProblem(enum.StrEnum):
    """Troubles of the platform itself."""

    NO_LEADER = "no_leader"
    CAPACITY_SHORT = "capacity_short"
    SINK_BEHIND = "sink_behind"
    JOB_OVERDUE = "job_overdue"
    WORKER_LOST = "worker_lost"


@dataclass(frozen=True, slots=True)
class DeviceUnreachable:
    """No target of a device responds, and the silence is confirmed."""


@dataclass(frozen=True, slots=True)
class SiteDark:
    """Most polls of a site find no device."""


@dataclass(frozen=True, slots=True)
class TargetFailing:
    """A confirmed failure of a target whose device responds. No codes: any code."""

    codes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class NoData:
    """A target had no good poll for so many of its intervals, whatever the reason."""

    intervals: float = 5.0


@dataclass(frozen=True, slots=True)
class InterfaceDown:
    """An interface that is enabled went down within the last days: it was up before."""

    days: float = 7.0
    labels: tuple[tuple[str, str], ...] = ()  # label and pattern with wildcards; all must fit


@dataclass(frozen=True, slots=True)
class Threshold:
    """A series is above or below a number. `clear` ends it; it lies on the good side."""

    metric: str
    measure: Measure = Measure.VALUE
    above: float | None = None  # exactly one of above and below is set
    below: float | None = None
    clear: float | None = None  # None: the threshold itself
    labels: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True, slots=True)
class CertificateExpiry:
    """A certificate that an http target saw ends within so many days."""

    days: float = 14.0


@dataclass(frozen=True, slots=True)
class PlatformTrouble:
    """The platform itself has a problem."""

    problem: PlatformProblem


Condition = (
    DeviceUnreachable
    | SiteDark
    | TargetFailing
    | NoData
    | InterfaceDown
    | Threshold
    | CertificateExpiry
    | PlatformTrouble
)
#: Conditions that a worker judges at the end of each poll, from the readings of the poll.
MetricCondition = InterfaceDown | Threshold | CertificateExpiry


@dataclass(frozen=True, slots=True)
class Rule:
    """A checked rule. `id` is 0 until it is stored; it is never used again.

    `owner` is `builtin`, `file:PATH` or the name of an actor. `for_ms` is the time for which the
    condition must hold before the alert fires, `keep_ms` the time for which it must be gone before
    the alert ends.
    """

    name: str
    condition: Condition
    severity: Severity = Severity.WARNING
    where: TargetFilter = ANY
    for_ms: int = 0
    keep_ms: int = 0
    text: str = ""  # a template, see text_template.py; "" is the text of the condition
    owner: str = ""
    enabled: bool = True
    id: int = 0

    @property
    def is_judged_by_workers(self) -> bool:
        return isinstance(self.condition, MetricCondition)
