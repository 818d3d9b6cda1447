"""Lines of series for tests of plots."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from poller.domain.metrics.reading import Kind, Series
from poller.domain.rollups.sample_columns import Group
from poller.domain.series.series_line import Points, PointVerdict, SeriesLine

MINUTE = 60_000
_NAN = float("nan")


def line(
    values: Sequence[float | None],
    metric: str = "ifHCInOctets",
    name: str = "eth0",
    group: Group = Group.COUNTER,
    start_ms: int = 0,
    step_ms: int = MINUTE,
    reset: int | None = None,
    spread: float = 2.0,
) -> SeriesLine:
    """A line with a point a step; None is a point of which nothing is known.

    The lowest and the highest value of a point are `spread` times apart from its mean.
    """
    kind = Kind.COUNTER if group is Group.COUNTER else Kind.GAUGE
    labels = (("ifIndex", "1"), ("ifName", name))
    series = Series(metric, labels, kind)
    count = len(values)
    numbers = np.array([_NAN if value is None else value for value in values], np.float64)
    known = np.where(np.isfinite(numbers), step_ms, 0)
    verdicts = [PointVerdict.UNKNOWN if value is None else PointVerdict.OK for value in values]
    if reset is not None:
        verdicts[reset] = PointVerdict.RESET
    points = Points(
        at_ms=start_ms + np.arange(count) * step_ms,
        span_ms=np.full(count, step_ms, np.int64),
        value=numbers,
        low=numbers / spread,
        high=numbers * spread,
        known_ms=known,
        averaged_ms=np.zeros(count, np.int64),
        verdicts=verdicts,
    )
    return SeriesLine(series, (metric, (("ifName", name),)), group, points)
