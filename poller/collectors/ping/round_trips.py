"""Plans the probes of one ping poll and summarizes their round trips. Performs no I/O."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Pace:
    """The plan of a poll: one probe every `interval_s`, each lost after `timeout_s`."""

    count: int
    interval_s: float
    timeout_s: float


@dataclass(frozen=True, slots=True)
class RoundTrips:
    """The result of a poll: `seconds` holds the round trip of each answered probe."""

    sent: int
    seconds: Sequence[float]
    #: An error of the network, or of this system, for a probe without an answer.
    error: str = ""
    #: TCP only: whether the port accepted a connection.
    accepted: bool = False

    @property
    def loss(self) -> float:
        if not self.sent:
            return 1.0
        return 1 - len(self.seconds) / self.sent


def plan(count: int, interval_s: float, timeout_s: float, left_s: float) -> Pace:
    """Fit the probes into the time left: shorten the interval, then the timeout of all probes."""
    left_s = max(0.0, left_s)
    timeout_s = min(timeout_s, left_s)
    if count == 1:
        return Pace(count, 0.0, timeout_s)
    longest_interval_s = (left_s - timeout_s) / (count - 1)
    return Pace(count, min(interval_s, longest_interval_s), timeout_s)


def summarize(seconds: Sequence[float]) -> tuple[float, float, float, float]:
    """Return minimum, mean, maximum and (population) standard deviation."""
    mean = sum(seconds) / len(seconds)
    variance = sum((each - mean) ** 2 for each in seconds) / len(seconds)
    return min(seconds), mean, max(seconds), math.sqrt(variance)
