"""The figures of a line are numbers that every form of an answer can hold."""

from __future__ import annotations

import numpy as np
import pytest

from poller.domain.metrics.reading import Kind, Series
from poller.domain.rollups.sample_columns import Group
from poller.domain.series.series_line import Points, PointVerdict, SeriesLine


def line(values: list[float], group: Group = Group.GAUGE) -> SeriesLine:
    count = len(values)
    column = np.array(values)
    span_ms = np.full(count, 300_000, np.int64)
    points = Points(
        at_ms=np.arange(count, dtype=np.int64) * 300_000,
        span_ms=span_ms,
        value=column,
        low=column,
        high=column,
        known_ms=span_ms,
        averaged_ms=np.zeros(count, np.int64),
        verdicts=[PointVerdict.OK] * count,
    )
    kind = Kind.COUNTER if group is Group.COUNTER else Kind.GAUGE
    return SeriesLine(Series("load", (), kind, 0), ("load", ()), group, points)


def test_a_mean_of_huge_numbers_is_finite() -> None:
    """The sum of values and times would be endless, which is no JSON."""
    assert line([1e308] * 20).mean() == pytest.approx(1e308)
    assert line([-1e308, 1e308]).mean() == pytest.approx(0, abs=1e295)
    assert line([20.0, 40.0]).mean() == 30


def test_a_total_beyond_all_numbers_is_unknown() -> None:
    """A counter may claim anything."""
    assert line([1e308] * 20, Group.COUNTER).total() is None
    assert line([10.0] * 2, Group.COUNTER).total() == 6_000
