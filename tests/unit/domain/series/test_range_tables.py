"""Roll-ups joined to a range: windows that are made coarser one after the other."""

from __future__ import annotations

import numpy as np
import pytest

from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity
from poller.domain.rollups.rollup import (
    Buckets,
    CounterTable,
    GaugeTable,
    Rollup,
    StateTable,
)
from poller.domain.rollups.sample_columns import SeriesRef
from poller.domain.series import range_tables
from poller.domain.series.range_tables import RangeTables
from poller.domain.series.series_line import SeriesLine

HOUR = 3_600_000
DAYS = 12
SHAPE = SeriesSet(
    (
        Series("ifHCInOctets", (("ifName", "eth0"),), Kind.COUNTER, 64),
        Series("temperature", (), Kind.GAUGE),
        Series("ifOperStatus", (("ifName", "eth0"),), Kind.GAUGE),
    ),
)


def day_of(day: int, dice: np.random.Generator) -> Rollup:
    """One day of hours, some of which are empty."""
    known_ms = dice.integers(0, 2, (1, 24)) * HOUR
    low, high = dice.uniform(0, 10, (1, 24)), dice.uniform(10, 20, (1, 24))
    nothing = np.zeros((1, 24), np.int64)
    resets = dice.integers(0, 2, (1, 24))
    refs = [(SeriesRef(SHAPE.id, index),) for index in range(3)]
    return Rollup(
        Buckets(day * 24 * HOUR, HOUR, 24),
        CounterTable(refs[0], known_ms, nothing, low * 3_600, low, high, resets),
        GaugeTable(refs[1], known_ms, (low + high) / 2, low, high, high),
        StateTable(refs[2], np.array([1.0 + day % 2]), known_ms),
    )


def joined(window: int, monkeypatch: pytest.MonkeyPatch) -> list[SeriesLine]:
    """The lines of some days in steps of six hours, joined in windows of this length."""
    monkeypatch.setattr(range_tables, "_WINDOW", window)
    buckets = Buckets(12 * HOUR, HOUR, (DAYS - 1) * 24)
    tables = RangeTables(buckets, Identity.IF_NAME, lambda _: True, factor=6)
    dice = np.random.default_rng(7)
    for day in range(DAYS):
        if day != 5:
            tables.add(day_of(day, dice), {SHAPE.id: SHAPE})
    return list(tables.lines())


@pytest.mark.parametrize("window", [1, 18, 30, 100])
def test_windows_make_the_lines_of_one_whole_range(
    monkeypatch: pytest.MonkeyPatch, window: int
) -> None:
    """Counters, gauges and states are the same, also where a day lies across two windows."""
    whole, found = joined(10_000, monkeypatch), joined(window, monkeypatch)
    assert [line.key for line in found] == [line.key for line in whole]
    assert len(found) == 3
    for line, expected in zip(found, whole, strict=True):
        assert len(line.points.at_ms) == (DAYS - 1) * 4
        for name in ("at_ms", "value", "low", "high", "known_ms", "averaged_ms"):
            got, wanted = (getattr(each.points, name) for each in (line, expected))
            np.testing.assert_array_equal(got, wanted)
        assert line.points.verdicts == expected.points.verdicts
