"""What else does a poll say about a counter? When its owner started, when it was set back, what its link carries.

The names are those of the IF-MIB and of our own collectors; a poll without them leaves the counter on its own.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.metrics.counters import UPTIME_RANGE, Point
from poller.domain.metrics.reading import Labels, Series, SeriesSet

#: Metrics that say how long the owner is up, and hundredths of a second in one of them.
_UPTIMES = {"sysUpTime": 1.0, "routeros_system_uptime": 100.0}
_DISCONTINUITY, _HIGH_SPEED, _SPEED, _CONNECTOR = (
    "ifCounterDiscontinuityTime", "ifHighSpeed", "ifSpeed", "ifConnectorPresent",
)  # fmt: skip
_ROUTEROS_RATE = "routeros_interface_rate"  # Mbit/s, as ifHighSpeed
_ABOUT_A_ROW = frozenset({_DISCONTINUITY, _HIGH_SPEED, _SPEED, _CONNECTOR, _ROUTEROS_RATE})
#: ifSpeed stands still here when the link is faster.
_SPEED_IS_MORE = 2.0**32 - 1
_NO_CONNECTOR = 2.0
#: Bits of a link's speed that one count takes at least. The shortest Ethernet frame has 64 octets.
_BITS_EACH = {"Octets": 8.0, "Pkts": 8.0 * 64, "x_byte": 8.0, "x_packet": 8.0 * 64}


@dataclass(frozen=True, slots=True)
class Witnesses:
    """Where in a poll's values the evidence for one counter stands; None: nowhere."""

    counter: int
    uptime: int | None
    uptime_unit_cs: float
    discontinuity: int | None
    high_speed: int | None
    speed: int | None
    connector: int | None
    bits_each: float  # 0: it does not count what a link carries

    def point(self, at_ms: int, values: Sequence[float]) -> Point:
        uptime = _number(values, self.uptime)
        return Point(
            at_ms,
            values[self.counter],
            None if uptime is None else uptime * self.uptime_unit_cs % UPTIME_RANGE,
            _number(values, self.discontinuity),
            self._most_per_s(values) if self.bits_each else None,
        )

    def _most_per_s(self, values: Sequence[float]) -> float | None:
        """None where it is not known; what has no connector (a bridge, a tunnel) has a speed in name only."""
        if _number(values, self.connector) == _NO_CONNECTOR:
            return None
        slow = _number(values, self.speed) or 0.0
        bits = max(
            (_number(values, self.high_speed) or 0.0) * 1e6, slow if slow < _SPEED_IS_MORE else 0.0
        )
        return bits / self.bits_each if bits else None


class Finder:
    """Looks the witnesses of a shape's counters up, once for all polls of that shape."""

    def __init__(self, shape: SeriesSet) -> None:
        self._uptime: int | None = None
        self._uptime_unit_cs = 1.0
        self._rows: dict[Labels, dict[str, int]] = {}
        for at, series in enumerate(shape.series):
            if series.name in _ABOUT_A_ROW:
                self._rows.setdefault(series.labels, {})[series.name] = at
            elif series.name in _UPTIMES and not series.labels:
                self._uptime, self._uptime_unit_cs = at, _UPTIMES[series.name]

    def of(self, at: int, series: Series) -> Witnesses:
        bits = next(
            (bits for ending, bits in _BITS_EACH.items() if series.name.endswith(ending)), 0.0
        )
        row = self._rows.get(series.labels, {})
        speeds = row.get(_HIGH_SPEED, row.get(_ROUTEROS_RATE)), row.get(_SPEED)
        return Witnesses(
            at,
            self._uptime,
            self._uptime_unit_cs,
            row.get(_DISCONTINUITY),
            *speeds,
            row.get(_CONNECTOR),
            bits,
        )


def _number(values: Sequence[float], at: int | None) -> float | None:
    if at is None:
        return None
    value = values[at]
    return value if 0 <= value < math.inf else None
