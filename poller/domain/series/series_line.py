"""A line: the points of one series over a range, as columns.

A point of a roll-up stands for a bucket and has the instant of its start; a raw point has the
instant of its poll.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from poller.domain.metrics.counters import Verdict
from poller.domain.metrics.reading import Labels, Series
from poller.domain.metrics.series_identity import Key
from poller.domain.rollups.sample_columns import Floats, Group, Integers

#: Whether a series is wanted.
Selects = Callable[[Series], bool]


class PointVerdict(enum.StrEnum):
    """How far the value of a point can be trusted: a verdict of a rate, or `unknown`."""

    OK = Verdict.OK.value
    WRAP = Verdict.WRAP.value
    GAP = Verdict.GAP.value  # in part or in whole an average over missing polls
    RESET = Verdict.RESET.value  # of a bucket: a reset in it; the rest of its time is known
    IMPLAUSIBLE = Verdict.IMPLAUSIBLE.value
    UNKNOWN = "unknown"  # nothing is known of the bucket


@dataclass(frozen=True, slots=True)
class Points:
    """The columns of a line. NaN: no value."""

    at_ms: Integers
    span_ms: Integers  # the time that each point stands for
    value: Floats  # a mean by time; of a counter growth a second, of a state the longest one
    low: Floats
    high: Floats
    known_ms: Integers  # of the span
    averaged_ms: Integers  # of the span, with an average over a gap only
    verdicts: Sequence[PointVerdict]

    @property
    def known_share(self) -> Floats:
        """The known part of each span, from 0 to 1."""
        share = np.zeros(len(self.at_ms))
        np.divide(self.known_ms, self.span_ms, out=share, where=self.span_ms > 0)
        return np.minimum(share, 1.0)


@dataclass(frozen=True, slots=True)
class SeriesLine:
    """One series of a target, named as in the newest poll of the range."""

    series: Series
    key: Key
    group: Group
    points: Points

    @property
    def known_by(self) -> Labels:
        """The labels that identify the series."""
        return self.key[1]

    def mean(self) -> float | None:
        """Return the mean by time; None without any value, and for a state."""
        points = self.points
        weight = points.known_ms + points.averaged_ms
        has_value = np.isfinite(points.value) & (weight > 0)
        if self.group is Group.STATE or not has_value.any():
            return None
        # Shares, not times: a mean of huge numbers is finite, their sum is not.
        share = weight[has_value] / weight[has_value].sum()
        return _finite(np.sum(points.value[has_value] * share))

    def lowest(self) -> float | None:
        values = self.points.low[np.isfinite(self.points.low)]
        return float(values.min()) if len(values) else None

    def highest(self) -> float | None:
        values = self.points.high[np.isfinite(self.points.high)]
        return float(values.max()) if len(values) else None

    def last(self) -> float | None:
        """Return the newest value."""
        values = self.points.value[np.isfinite(self.points.value)]
        return float(values[-1]) if len(values) else None

    def total(self) -> float | None:
        """Return the growth of a counter over the time with a rate; None for other series, and for
        more than a number can say.
        """
        if self.group is not Group.COUNTER:
            return None
        points = self.points
        has_value = np.isfinite(points.value)
        weight_ms = (points.known_ms + points.averaged_ms)[has_value]
        with np.errstate(over="ignore", invalid="ignore"):
            return _finite(np.sum(points.value[has_value] * (weight_ms / 1000)))

    def known_share(self) -> float:
        """Return the known part of the range, from 0 to 1."""
        whole_ms = int(self.points.span_ms.sum())
        return min(1.0, int(self.points.known_ms.sum()) / whole_ms) if whole_ms else 0.0


def _finite(number: np.floating) -> float | None:
    """Return a number that JSON can hold, or None."""
    return float(number) if np.isfinite(number) else None
