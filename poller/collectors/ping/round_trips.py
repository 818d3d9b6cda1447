"""How are the questions of one poll spread over its time, and what do their round trips say? Pure numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """So many questions, one every `interval_s`; each is waited for `patience_s`, and after that it is lost."""

    count: int
    interval_s: float
    patience_s: float


@dataclass(frozen=True, slots=True)
class Trips:
    """What became of the questions: `seconds` are the round trips of those that were answered."""

    sent: int
    seconds: Sequence[float]
    #: What the network, or our own system, said about one that was not.
    told: str = ""
    #: Of TCP: did the port accept a connection?
    accepted: bool = False

    @property
    def loss(self) -> float:
        return 1 - len(self.seconds) / self.sent if self.sent else 1.0


def pace(count: int, interval_s: float, timeout_s: float, left_s: float) -> Pace:
    """As asked for; faster where too little time is left for that, so that each question gets the same patience."""
    left_s = max(0.0, left_s)
    patience_s = min(timeout_s, left_s)
    room_s = left_s - patience_s
    return Pace(count, min(interval_s, room_s / (count - 1)) if count > 1 else 0.0, patience_s)


def spread(seconds: Sequence[float]) -> tuple[float, float, float, float]:
    """Shortest, mean, longest, and standard deviation (of these, not of what they are a sample of)."""
    mean = sum(seconds) / len(seconds)
    variance = sum((each - mean) ** 2 for each in seconds) / len(seconds)
    return min(seconds), mean, max(seconds), math.sqrt(variance)
