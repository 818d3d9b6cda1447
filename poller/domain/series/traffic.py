"""Traffic of interfaces over a range: 95th percentile, mean, maximum, total and unknown time.

The figures come from the buckets of roll-ups. Time without a rate counts for nothing: it is no
traffic of zero.
"""

from __future__ import annotations

import enum
import math
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from poller.domain.metrics.reading import Labels, Series
from poller.domain.metrics.series_identity import Identity
from poller.domain.rollups.rollup import CounterTable, Rollup
from poller.domain.rollups.sample_columns import Floats, SeriesRef, shape_plan
from poller.domain.series.range_tables import Shapes

PERCENTILE = 0.95


class Direction(enum.StrEnum):
    """The direction of traffic, seen from the device."""

    IN = "in"
    OUT = "out"


#: Counters of octets by direction, the better one first.
_OCTETS = {
    Direction.IN: ("ifHCInOctets", "ifInOctets", "routeros_interface_rx_byte"),
    Direction.OUT: ("ifHCOutOctets", "ifOutOctets", "routeros_interface_tx_byte"),
}
_COUNTERS = frozenset(name for names in _OCTETS.values() for name in names)
#: The speed of a link in Mbit/s.
_SPEEDS = ("ifHighSpeed", "routeros_interface_rate")


@dataclass(frozen=True, slots=True)
class DirectionTraffic:
    """One direction of an interface. Rates are octets a second; None: nothing is known."""

    p95: float | None
    mean: float | None
    highest: float | None
    total: float
    known_ms: int
    averaged_ms: int  # with an average over missing polls only
    unknown_ms: int


@dataclass(frozen=True, slots=True)
class InterfaceTraffic:
    """Both directions of an interface; None: the device does not count it."""

    labels: Labels  # as in the newest poll
    known_by: Labels
    octets_per_s: float | None  # what the link can carry; None: unknown
    directions: dict[Direction, DirectionTraffic]

    def utilisation(self, octets: float | None) -> float | None:
        """Return the share of the link's speed, from 0 to 1; None if either is unknown."""
        if octets is None or not self.octets_per_s:
            return None
        return octets / self.octets_per_s


def selects(series: Series) -> bool:
    """Whether a series is part of the figures of traffic."""
    return series.name in _COUNTERS or series.name in _SPEEDS


@dataclass(slots=True)
class _Counter:
    """The sums of one counter, and the mean rate of every bucket with one."""

    total: float = 0.0
    known_ms: int = 0
    averaged_ms: int = 0
    highest: float | None = None
    means: list[Floats] = field(default_factory=list)

    def add(self, table: CounterTable, row: int) -> None:
        known_ms, averaged_ms = table.known_ms[row], table.gap_ms[row]
        has_rate = known_ms + averaged_ms > 0
        if not has_rate.any():
            return
        total = table.total[row][has_rate]
        self.total += float(total.sum())
        self.known_ms += int(known_ms.sum())
        self.averaged_ms += int(averaged_ms.sum())
        self.highest = max(self.highest or 0.0, float(table.high[row][has_rate].max()))
        self.means.append(total * 1000 / (known_ms + averaged_ms)[has_rate])

    @property
    def with_rate_ms(self) -> int:
        return self.known_ms + self.averaged_ms

    def traffic(self, range_ms: int) -> DirectionTraffic:
        with_rate_ms = self.with_rate_ms
        return DirectionTraffic(
            p95=percentile(np.concatenate(self.means), PERCENTILE) if self.means else None,
            mean=self.total * 1000 / with_rate_ms if with_rate_ms else None,
            highest=self.highest,
            total=self.total,
            known_ms=self.known_ms,
            averaged_ms=self.averaged_ms,
            unknown_ms=max(0, range_ms - with_rate_ms),
        )


@dataclass(slots=True)
class _Interface:
    labels: Labels = ()
    counters: dict[str, _Counter] = field(default_factory=dict)
    megabits: float = 0.0


class TrafficTally:
    """Adds up the roll-ups of one target, in the order of time."""

    def __init__(self, by: Identity) -> None:
        self._by = by
        self._interfaces: dict[Labels, _Interface] = {}

    def add(self, part: Rollup, shapes: Shapes) -> None:
        """Add the buckets of a roll-up. Series of unknown shapes are left out."""
        for row, ref in enumerate(part.counters.refs):
            found = self._found(ref, shapes)
            if found is not None and found[0] in _COUNTERS:
                name, interface = found
                counter = interface.counters.setdefault(name, _Counter())
                counter.add(part.counters, row)
        for row, ref in enumerate(part.gauges.refs):
            found = self._found(ref, shapes)
            known = np.flatnonzero(part.gauges.known_ms[row])
            if found is not None and found[0] in _SPEEDS and len(known):
                found[1].megabits = float(part.gauges.last[row][known[-1]])

    def interfaces(self, range_ms: int) -> Iterator[InterfaceTraffic]:
        """Yield the figures of each interface that counts octets, over a range of this length."""
        for known_by, interface in self._interfaces.items():
            directions = {}
            for direction, names in _OCTETS.items():
                counters = [
                    interface.counters[name] for name in names if name in interface.counters
                ]
                if counters:
                    # Of those with a rate for as long, the better one: max returns the first.
                    longest = max(counters, key=lambda counter: counter.with_rate_ms)
                    directions[direction] = longest.traffic(range_ms)
            if directions:
                octets_per_s = interface.megabits * 1e6 / 8 or None
                yield InterfaceTraffic(interface.labels, known_by, octets_per_s, directions)

    def _found(self, ref: SeriesRef, shapes: Shapes) -> tuple[str, _Interface] | None:
        shape = shapes.get(ref.shape_id)
        if shape is None or not selects(shape.series[ref.index]):
            return None
        name, known_by = shape_plan(shape, self._by).keys[ref.index]
        interface = self._interfaces.setdefault(known_by, _Interface())
        interface.labels = shape.series[ref.index].labels
        return name, interface


def percentile(values: Floats, share: float) -> float:
    """Return the value that a share of all values does not exceed: the nearest rank."""
    rank = max(1, math.ceil(share * len(values) - 1e-9))
    return float(np.partition(values, rank - 1)[rank - 1])
