"""What a poll says about a counter besides its value: uptime, discontinuity, speed of the link.

The names are those of the IF-MIB and of the built-in collectors. A poll without them gives a
counter no evidence.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.metrics.counters import UPTIME_RANGE, Point
from poller.domain.metrics.reading import Labels, Series, SeriesSet

#: Metrics of the uptime, and the hundredths of a second in one unit of each.
_UPTIMES = {"sysUpTime": 1.0, "routeros_system_uptime": 100.0}
_DISCONTINUITY = "ifCounterDiscontinuityTime"
_HIGH_SPEED = "ifHighSpeed"
_SPEED = "ifSpeed"
_CONNECTOR = "ifConnectorPresent"
_ROUTEROS_RATE = "routeros_interface_rate"  # Mbit/s, as ifHighSpeed
_ABOUT_A_ROW = frozenset({_DISCONTINUITY, _HIGH_SPEED, _SPEED, _CONNECTOR, _ROUTEROS_RATE})
#: The value of ifSpeed for every faster link.
SPEED_IS_MORE = 2.0**32 - 1
NO_CONNECTOR = 2.0
#: The least bits on the link for one count. The shortest Ethernet frame has 64 octets.
_BITS_EACH = {"Octets": 8.0, "Pkts": 8.0 * 64, "x_byte": 8.0, "x_packet": 8.0 * 64}


@dataclass(frozen=True, slots=True)
class EvidenceColumns:
    """The indexes of one counter and its evidence in the values of a poll; None: absent."""

    counter: int
    uptime: int | None
    uptime_unit_cs: float
    discontinuity: int | None
    high_speed: int | None
    speed: int | None
    connector: int | None
    bits_each: float  # 0: the counter does not count what a link carries

    def point(self, at_ms: int, values: Sequence[float]) -> Point:
        """Return the sample of the counter in one poll."""
        return Point(
            at_ms=at_ms,
            value=values[self.counter],
            uptime_cs=self.uptime_cs(values),
            discontinuity_cs=self.discontinuity_cs(values),
            max_per_s=self._max_per_s(values) if self.bits_each else None,
        )

    def uptime_cs(self, values: Sequence[float]) -> float | None:
        """Return the uptime of the device in one poll, as sysUpTime counts it."""
        uptime = _number(values, self.uptime)
        return None if uptime is None else uptime * self.uptime_unit_cs % UPTIME_RANGE

    def discontinuity_cs(self, values: Sequence[float]) -> float | None:
        """Return the uptime at which the counter was last set back."""
        return _number(values, self.discontinuity)

    def _max_per_s(self, values: Sequence[float]) -> float | None:
        """Return the limit by the speed of the link, or None.

        An interface without a connector (a bridge, a tunnel) has a nominal speed only.
        """
        if _number(values, self.connector) == NO_CONNECTOR:
            return None
        bits_per_s = self.link_bits_per_s(values)
        return bits_per_s / self.bits_each if bits_per_s else None

    def link_bits_per_s(self, values: Sequence[float]) -> float:
        """Return the speed that the interface states, nominal or not; 0 is unknown."""
        speed = _number(values, self.speed) or 0.0
        if speed >= SPEED_IS_MORE:
            speed = 0.0
        high_speed = (_number(values, self.high_speed) or 0.0) * 1e6
        return max(high_speed, speed)


class EvidenceFinder:
    """Finds the evidence of a shape's counters, once for all polls of that shape."""

    def __init__(self, shape: SeriesSet) -> None:
        self._uptime: int | None = None
        self._uptime_unit_cs = 1.0
        self._rows: dict[Labels, dict[str, int]] = {}
        for index, series in enumerate(shape.series):
            if series.name in _ABOUT_A_ROW:
                row = self._rows.setdefault(series.labels, {})
                row[series.name] = index
            elif series.name in _UPTIMES and not series.labels:
                self._uptime = index
                self._uptime_unit_cs = _UPTIMES[series.name]

    def columns(self, index: int, series: Series) -> EvidenceColumns:
        """Return the columns of the counter at this index of the shape."""
        row = self._rows.get(series.labels, {})
        return EvidenceColumns(
            counter=index,
            uptime=self._uptime,
            uptime_unit_cs=self._uptime_unit_cs,
            discontinuity=row.get(_DISCONTINUITY),
            high_speed=row.get(_HIGH_SPEED, row.get(_ROUTEROS_RATE)),
            speed=row.get(_SPEED),
            connector=row.get(_CONNECTOR),
            bits_each=_bits_each(series.name),
        )


def _bits_each(name: str) -> float:
    for ending, bits in _BITS_EACH.items():
        if name.endswith(ending):
            return bits
    return 0.0


def _number(values: Sequence[float], index: int | None) -> float | None:
    """Return the value at the index if it is a number from 0 on."""
    if index is None:
        return None
    value = values[index]
    if 0 <= value < math.inf:
        return value
    return None
