"""A day of if_mib polls with believable traffic, for the measurement of history.

Some ports are busy: rates follow the hour, drift from minute to minute and are noisy; packets have
sizes, errors are rare. Counters of 32 bits are the low bits of those of 64 bits, as in an agent.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poller.domain.history.poll_rows import RawPoll
from poller.domain.metrics.reading import SeriesSet

Floats = NDArray[np.float64]

INTERVAL_MS = 60_000
POLLS = 1440
BUSY_PORTS = 4
#: The fastest rate of a port, in octets a second.
_LINE_RATE = 118e6


@dataclass(frozen=True)
class Day:
    """The polls of one device: `at_ms` [polls], `values` [series, polls]."""

    shape: SeriesSet
    at_ms: NDArray[np.int64]
    values: Floats

    def polls(self) -> Iterator[RawPoll]:
        rows = np.ascontiguousarray(self.values.T, dtype="<f8")
        for at_ms, row in zip(self.at_ms.tolist(), rows, strict=True):
            yield RawPoll(at_ms, self.shape.id, row.tobytes())


def day(
    shape: SeriesSet, first: Sequence[float], start_ms: int, seed: int, polls: int = POLLS
) -> Day:
    """Make the day of one device from the shape and the values of one poll."""
    rng = np.random.default_rng(seed)
    minutes = np.arange(polls) + rng.normal(0, 0.001, polls)
    names = [dict(series.labels).get("ifName", "") for series in shape.series]
    ports = {name: number for number, name in enumerate(dict.fromkeys(filter(None, names)))}
    traffic = {
        (name, way): _traffic(rng, minutes, number < BUSY_PORTS)
        for name, number in ports.items()
        for way in ("In", "Out")
    }
    values = np.repeat(np.array(first, dtype=np.float64)[:, None], polls, axis=1)
    for column, (series, port) in enumerate(zip(shape.series, names, strict=True)):
        if series.name == "sysUpTime":
            values[column] = np.floor(first[column] % 2**30 + minutes * 6000)
        elif port:
            counted = _counted(series.name, traffic[port, "In" if "In" in series.name else "Out"])
            if counted is not None:
                values[column] = counted % 2**32 if series.width == 32 else counted
    at_ms = start_ms + np.round(minutes * INTERVAL_MS).astype(np.int64)
    return Day(shape, np.maximum.accumulate(at_ms), values)


def _counted(name: str, traffic: dict[str, Floats]) -> Floats | None:
    """The counter of a metric, None if it is none of traffic."""
    if "NUcast" in name:
        return traffic["Multicast"] + traffic["Broadcast"]
    return next((counted for part, counted in traffic.items() if part in name), None)


def _traffic(rng: np.random.Generator, minutes: Floats, is_busy: bool) -> dict[str, Floats]:
    """The counters of one direction of a port, by the part of a metric's name."""
    polls = len(minutes)
    mean = 10 ** rng.uniform(5.5, 7.7)  # 0.3 to 50 MB a second
    by_hour = 1 + 0.6 * np.sin(2 * np.pi * (minutes / 1440 - 0.3))
    drift = np.zeros(polls)
    changes = rng.normal(0, 0.12, polls)
    for number in range(1, polls if is_busy else 1):
        drift[number] = 0.9 * drift[number - 1] + changes[number]
    rate = mean * by_hour * np.exp(drift + rng.normal(0, 0.05, polls)) * is_busy
    octets = np.minimum(rate, _LINE_RATE) * 60
    packets = octets / (rng.uniform(400, 1100) * np.exp(rng.normal(0, 0.05, polls)))
    return {
        "Octets": np.floor(np.cumsum(octets) + rng.integers(0, 2**45)),
        "Ucast": np.floor(np.cumsum(packets) + rng.integers(0, 2**38)),
        "Multicast": _events(rng, rng.uniform(5, 60) * is_busy, polls, 2**30),
        "Broadcast": _events(rng, rng.uniform(5, 200) * is_busy, polls, 2**30),
        "Errors": _events(rng, 0.002 * is_busy, polls, 2),
        "Discards": _events(rng, 0.05 * is_busy, polls, 2),
    }


def _events(rng: np.random.Generator, mean: float, polls: int, first: int) -> Floats:
    return np.asarray(np.cumsum(rng.poisson(mean, polls)) + float(rng.integers(0, first)))
