"""What time is it for the simulated devices? The wall clock's, or that of one which stands still or runs faster."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from poller import errors


@dataclass(frozen=True, slots=True)
class Clock:
    """The wall clock; or one that shows `at` now and runs `rate` times as fast: 0 stands still."""

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
    return Clock(at, rate=0.0)


def running(rate: float) -> Clock:
    """From now on, this many times as fast."""
    return Clock(time.time(), rate)
