"""The clock of the simulated devices: the wall clock, or a stopped, slower or faster one."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from poller import errors


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock if `at` is None, otherwise a clock that starts at `at` and runs at `rate`.

    A rate of 1 is real time, a rate of 0 stops the clock.
    """

    at: float | None = None
    rate: float = 1.0
    made: float = field(default_factory=time.monotonic)

    def __post_init__(self) -> None:
        if not 0 <= self.rate <= 1e6:
            raise errors.InvalidInput(
                f"clock: a rate of {self.rate} is out of range", hint="give 0 to 1000000"
            )

    def now(self) -> float:
        if self.at is None:
            return time.time()
        return self.at + (time.monotonic() - self.made) * self.rate


def frozen(at: float) -> Clock:
    """Return a clock that always shows `at`, in seconds since the Unix epoch."""
    return Clock(at, rate=0.0)


def running(rate: float) -> Clock:
    """Return a clock that starts now and runs `rate` times as fast as the wall clock."""
    return Clock(time.time(), rate)
