"""Figures of a month: which counter stands for an interface."""

from __future__ import annotations

import pytest

from poller.domain.metrics.rates import Poll
from poller.domain.metrics.reading import Kind, ReadingSet, SeriesSet
from poller.domain.metrics.series_identity import Identity
from poller.domain.rollups import day_rollup
from poller.domain.rollups.rollup import Buckets
from poller.domain.series.traffic import Direction, DirectionTraffic, TrafficTally
from tests.unit.domain.rollups.history_polls import HOUR, MINUTE, START, series, shaped

WIDE = series("ifHCInOctets", Kind.COUNTER, 64)
NARROW = series("ifInOctets", Kind.COUNTER, 32)


def figures(polls: list[Poll]) -> DirectionTraffic:
    parts = shaped(polls)
    found = day_rollup.roll_up(parts, Buckets(START, 300_000, 12), MINUTE)
    assert found is not None
    tally = TrafficTally(Identity.IF_NAME)
    tally.add(found, {part.shape.id: part.shape for part in parts})
    [interface] = tally.interfaces(HOUR)
    return interface.directions[Direction.IN]


def test_the_64_bit_counter_stands_for_both() -> None:
    """The short one has the same octets, and may be full twice between two polls."""
    both = SeriesSet((WIDE, NARROW))
    polls = [(START + n * MINUTE, ReadingSet(both, [n * 600.0, n * 6.0])) for n in range(61)]
    assert figures(polls).mean == 10


def test_a_64_bit_counter_that_came_late_does_not_hide_the_hour_before() -> None:
    """The module was changed near the end: the counter with the longer time is reported."""
    old, new = SeriesSet((NARROW,)), SeriesSet((WIDE, NARROW))
    polls = [(START + n * MINUTE, ReadingSet(old, [n * 600.0])) for n in range(50)]
    polls += [(START + n * MINUTE, ReadingSet(new, [n * 600.0, n * 600.0])) for n in range(50, 61)]
    found = figures(polls)
    assert found.unknown_ms == 0
    assert found.total == pytest.approx(36_000)
