"""How many series sets of a target stay in memory."""

from __future__ import annotations

import pytest

from poller.collectors.memory import series_sets
from poller.domain.metrics.reading import Kind, Series, SeriesSet


def of(count: int) -> SeriesSet:
    return SeriesSet(tuple(Series(f"m{n}", (), Kind.GAUGE) for n in range(count)))


def test_the_newest_sets_stay_in_their_order() -> None:
    first, second, third = of(1), of(2), of(3)
    assert series_sets.with_newest((first, second), third, 2) == (second, third)
    assert series_sets.with_newest((), third, 2) == (third,)


def test_older_sets_give_way_to_a_large_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_sets, "MAX_SERIES", 10)
    small, large = of(3), of(8)
    assert series_sets.with_newest((small, small), small, 4) == (small, small, small)
    assert series_sets.with_newest((small, small), large, 4) == (large,)
