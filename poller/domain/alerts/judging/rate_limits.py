"""How much the counters of a poll may have grown before their rates are looked at closely.

The limits are a sieve, not the verdict: they let a growth pass that no rule can be about, so that a
quiet poll costs one comparison a counter.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field

from poller.domain.metrics.counter_evidence import SPEED_IS_MORE
from poller.domain.metrics.reading import unpack

#: Limits that are kept for reuse: of several times between polls, and of devices that differ in
#: their speeds only.
_MOST_KEPT = 256


@dataclass(frozen=True, slots=True)
class CounterLimit:
    """The least that a rule may be about, for one counter. `high` is exceeded, `low` fallen short
    of; in growth a second, or in percent of the link. The speed is at these places, or at none.
    """

    high: float = math.inf
    low: float = -math.inf
    percent_high: float = math.inf
    percent_low: float = -math.inf
    high_speed: int | None = None
    speed: int | None = None

    @property
    def needs_speed(self) -> bool:
        return self.percent_high < math.inf or self.percent_low > -math.inf

    def per_second(self, speeds: Sequence[float]) -> tuple[float, float]:
        """Return the limits in growth a second, given the speeds of the poll."""
        if not self.needs_speed:
            return self.high, self.low
        octets_per_s = self._bits_per_s(speeds) / 8
        if not octets_per_s:
            return self.high, self.low
        return (
            min(self.high, self.percent_high / 100 * octets_per_s),
            max(self.low, self.percent_low / 100 * octets_per_s),
        )

    def _bits_per_s(self, speeds: Sequence[float]) -> float:
        high_speed = 0.0 if self.high_speed is None else speeds[self.high_speed] * 1e6
        speed = 0.0 if self.speed is None else speeds[self.speed]
        if speed >= SPEED_IS_MORE:
            speed = 0.0
        known = [each for each in (high_speed, speed) if 0 < each < math.inf]
        return max(known, default=0.0)


@dataclass(frozen=True, slots=True)
class GrowthLimits:
    """A rate worth a look: a growth above `high`, or below `low`."""

    high: Sequence[float]
    low: Sequence[float] | None  # None: no rule is about low rates


@dataclass(frozen=True, slots=True)
class RateLimits:
    """The limits of a plan's counters, in their order."""

    counters: Sequence[CounterLimit]
    _made: dict[tuple[int, bytes], GrowthLimits] = field(default_factory=dict)

    @property
    def needs_speeds(self) -> bool:
        return any(limit.needs_speed for limit in self.counters)

    def growth(self, seconds: float, speeds: bytes) -> GrowthLimits:
        """Return the limits for polls that are so far apart, with these packed speeds.

        Whole seconds are enough for a sieve, and let polls share what was made.
        """
        whole_s = int(seconds)
        found = self._made.get((whole_s, speeds))
        if found is None:
            if len(self._made) >= _MOST_KEPT:
                self._made.clear()
            found = self._made[whole_s, speeds] = self._make(whole_s, unpack(speeds))
        return found

    def _make(self, whole_s: int, speeds: Sequence[float]) -> GrowthLimits:
        rates = [limit.per_second(speeds) for limit in self.counters]
        high = array("d", [_times(high, whole_s) for high, _ in rates])
        if all(low == -math.inf for _, low in rates):
            return GrowthLimits(high, None)
        return GrowthLimits(high, array("d", [_times(low, whole_s + 1) for _, low in rates]))


def _times(rate: float, seconds: int) -> float:
    """An infinite limit stays infinite: 0 times infinity is no number."""
    return rate if math.isinf(rate) else rate * seconds
