"""What the board is asked and what it answers: plain values, without Redis."""

from __future__ import annotations

import enum
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.domain.failures.outcome import Result
from poller.domain.record import target_status


@dataclass(frozen=True, slots=True)
class Room:
    """How much one claim may take."""

    targets: int
    batch_size: int
    lease_ms: int  # covers the wait in the queue; `start` sets the lease anew
    sizes: Mapping[str, int] = field(
        default_factory=dict
    )  # of batches of queues whose polls cost more

    def size_of(self, queue: str) -> int:
        return self.sizes.get(queue, self.batch_size)


class Claimed(NamedTuple):
    """Targets of one queue; what is urgent overtakes routine polls on the way to the workers, too."""

    queue: str
    urgent: bool
    ids: Sequence[str]


@dataclass(frozen=True, slots=True)
class Claim:
    now_ms: int
    token: str  # '' when nothing was due
    again: bool  # the previous claim, which was never said to be published
    parts: Sequence[Claimed]

    @property
    def targets(self) -> int:
        return sum(len(part.ids) for part in self.parts)


class Started(NamedTuple):
    """The answer for one target: `result` is OK, DUPLICATE, STALE or GONE."""

    id: int
    result: Result
    plan_ms: int
    version: int
    queue: str
    status: target_status.Status
    kept: bool = False  # a person, or its dark site, kept it from being polled until now


@dataclass(frozen=True, slots=True)
class Start:
    """The answer for a batch: the board's clock, its queue, how many targets of that queue are overdue."""

    now_ms: int
    queue: str
    overdue: int
    answers: Sequence[Started]
    read_at: float  # by this process's monotonic clock

    @property
    def believed_ms(self) -> int:
        """What the board's clock says now, if nobody set it meanwhile."""
        return self.now_ms + round((time.monotonic() - self.read_at) * 1000)


class Place(enum.StrEnum):
    """Where a finished target waits. A probe of what was broken goes before routine polls."""

    DUE = "due"
    URGENT = "urgent"
    PARKED = "parked"


class Finish(NamedTuple):
    """Where a target goes next. An empty status leaves the stored one as it is.

    Steady: it was well and is well, in the queue where its batch came from, and waits for its next slot. That is the
    cheap case, since the board has nothing else to look at.
    """

    id: int
    next_ms: int
    status: str = ""
    place: Place = Place.DUE
    steady: bool = False


@dataclass(frozen=True, slots=True)
class Reaped:
    id: int
    token: str
    plan_ms: int
    attempts: int


@dataclass(frozen=True, slots=True)
class Check:
    """Which targets are not in exactly one place."""

    lost: list[int] = field(default_factory=list)
    doubled: list[int] = field(default_factory=list)


class Waiting(NamedTuple):
    id: int
    at_ms: int
    interval_ms: int  # 0 if the board does not know it
