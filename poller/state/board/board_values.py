"""Values that the board takes and returns. They hold no connection to Redis."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.domain.failures.outcome import Result
from poller.domain.metrics.series_ends import Standing
from poller.domain.record import target_status
from poller.domain.record.event_kinds import Event


class NotLeader(Exception):
    """Another process leads, or none does. The refused move changed nothing."""


@dataclass(frozen=True, slots=True)
class ClaimLimits:
    """Limits of one claim."""

    targets: int
    batch_size: int
    lease_ms: int  # covers the wait in the queue; `start` sets a new lease
    #: Batch sizes of queues with costly polls.
    sizes: Mapping[str, int] = field(default_factory=dict)

    def size_of(self, queue: str) -> int:
        """The number of targets in a batch of this queue."""
        return self.sizes.get(queue, self.batch_size)


class Claimed(NamedTuple):
    """Claimed targets of one queue. Urgent batches overtake routine ones in Celery, too."""

    queue: str
    urgent: bool
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Claim:
    """The targets of one claim, by queue."""

    now_ms: int
    token: str  # "" when nothing was due
    repeated: bool  # the previous claim once more: its publication was never confirmed
    parts: Sequence[Claimed]

    @property
    def targets(self) -> int:
        """The number of claimed targets."""
        return sum(len(part.ids) for part in self.parts)


class Started(NamedTuple):
    """The board's reply for one target of a batch. `result` is OK, DUPLICATE, STALE or GONE."""

    id: int
    result: Result
    plan_ms: int
    version: int
    queue: str
    status: target_status.Status
    postponed: bool = False  # the poll is late because of an operator or a dark site
    marks: str = ""  # of alert rules that hold for it, see domain/alerts/mark.py


@dataclass(frozen=True, slots=True)
class Start:
    """The board's reply for a batch."""

    now_ms: int  # the board's clock
    queue: str
    overdue: int  # targets of this queue that are overdue
    targets: Sequence[Started]  # one for each requested id
    read_mono: float  # instant of the reply by this process's monotonic clock
    offset_ms: float  # from this process's monotonic clock to the board's clock
    rules_version: int = 0  # of the alert rules, as the leader knows it; 0: none is known

    @property
    def believed_ms(self) -> int:
        """The current instant of the board's clock, unless an operator set that clock meanwhile."""
        return self.at_ms(time.monotonic())

    def at_ms(self, mono: float) -> int:
        """An instant of this process's monotonic clock, by the board's clock."""
        return int(mono * 1000 + self.offset_ms)


class Place(enum.StrEnum):
    """Places where a finished target can wait. A probe of a failed target is urgent."""

    DUE = "due"
    URGENT = "urgent"
    PARKED = "parked"


class Move(NamedTuple):
    """The next place of a finished target. An empty status keeps the stored one.

    A steady target was well, is well, stays in the queue of its batch and waits for its next slot.
    The board reads nothing else for a steady target.
    """

    id: int
    next_ms: int
    status: str = ""
    place: Place = Place.DUE
    steady: bool = False


class MarkChange(NamedTuple):
    """The marks of a finished target from now on; "" for none. News is what the keeper of alerts
    has to look at: a mark that began or ended.
    """

    target_id: int
    text: str
    is_news: bool


class Report(NamedTuple):
    """News of a finished target that fails, or did.

    The board decides which of the events are true, publishes those, and remembers what it told.
    """

    target_id: int
    device_id: int
    site: str
    siblings: Sequence[int]  # the other targets of the device
    down: Event | None = None  # the device does not respond
    up: Event | None = None  # the device responds again
    failing: Event | None = None
    recovered: Event | None = None


class Finished(NamedTuple):
    """The result of each move, and the events that the board published."""

    results: list[Result]
    events: list[Event]


@dataclass(frozen=True, slots=True)
class Reaped:
    """A target whose lease ran out, with the run that was lost."""

    id: int
    token: str
    plan_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Removal:
    """A target that leaves the board."""

    id: int


class Placed(NamedTuple):
    """Numbers of targets that `place` added, changed and removed."""

    placed: int
    changed: int
    removed: int


class Demand(NamedTuple):
    """The board's clock, and `due`, `inflight` or `gone` by target."""

    now_ms: int
    places: dict[int, str]


@dataclass(frozen=True, slots=True)
class Check:
    """Targets that are not in exactly one place."""

    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)


class Standings(NamedTuple):
    """The state of targets on the board at one instant."""

    now_ms: int
    by_target: Mapping[int, Standing]


class Sizes(NamedTuple):
    """Numbers of targets: all, waiting (due, urgent, parked, held) and in flight."""

    targets: int
    waiting: int
    in_flight: int


class Waiting(NamedTuple):
    """A due target."""

    id: int
    at_ms: int
    interval_ms: int  # 0 if the board has no readable spec of the target


class QueueChanges(NamedTuple):
    """Queues that the list of queues gained and lost."""

    came: list[str]
    went: list[str]
