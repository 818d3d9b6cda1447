"""Samples that let PromQL see wraps and resets: where they are added, and where never."""

from __future__ import annotations

import itertools
import math
from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics import counters
from poller.domain.metrics.counter_bridges import Bridge, CounterPlan, LastPoll
from poller.domain.metrics.counters import Point, Verdict
from poller.domain.metrics.reading import Kind, Series, SeriesSet

ROW = (("ifIndex", "1"),)
SHAPE = SeriesSet(
    (
        Series("sysUpTime", (), Kind.GAUGE),
        Series("ifInOctets", ROW, Kind.COUNTER, 32),
        Series("ifHCInOctets", ROW, Kind.COUNTER, 64),
        Series("ifHighSpeed", ROW, Kind.GAUGE),
        Series("ifCounterDiscontinuityTime", ROW, Kind.GAUGE),
    )
)
PLAN = CounterPlan(SHAPE)
FULL = 2.0**32
T0 = 1_700_000_000_000
MINUTE = 60_000
HOUR_CS = 360_000.0


def last(values: Sequence[float], at_ms: int = T0, plan: CounterPlan = PLAN) -> LastPoll:
    return plan.last_poll(None, at_ms, values)


def bridges(before: LastPoll, at_ms: int, values: Sequence[float]) -> list[Bridge]:
    return PLAN.bridges(before, PLAN.last_poll(before, at_ms, values), values, MINUTE)


def poll(
    octets: float, wide: float, uptime_cs: float = HOUR_CS, told_cs: float = 0.0
) -> list[float]:
    return [uptime_cs, octets, wide, 100.0, told_cs]


def test_a_counter_that_grows_needs_no_bridge() -> None:
    """Two ordinary polls get nothing added."""
    before = last(poll(10.0, 10.0))
    assert bridges(before, T0 + MINUTE, poll(20.0, 20.0, HOUR_CS + 6000)) == []


def test_a_wrap_gets_the_full_counter_at_its_instant() -> None:
    """A counter that had a quarter of its growth left is full after a quarter of the time."""
    before = last(poll(FULL - 1e6, 0.0))
    now = poll(3e6, 4e6, HOUR_CS + 6000)
    assert bridges(before, T0 + MINUTE, now) == [Bridge(1, T0 + 15_000, FULL)]


def test_a_wrap_over_a_missing_poll_is_not_bridged() -> None:
    """The missing poll may be in the spool of a worker, on either side of the wrap."""
    before = last(poll(FULL - 1e6, 0.0))
    now = poll(3e6, 4e6, HOUR_CS + 12_000)
    assert bridges(before, T0 + 2 * MINUTE, now) == []


def test_a_restart_needs_no_bridge() -> None:
    """PromQL sees the fall by itself, and a counter that did not fall may have counted on."""
    before = last(poll(1e6, 1e6))
    assert bridges(before, T0 + MINUTE, poll(5e5, 2e6, 3000)) == []


def test_a_counter_that_was_set_back_and_is_higher_again_gets_a_zero() -> None:
    """The device says when: ifCounterDiscontinuityTime; the zero is there."""
    before = last(poll(1e6, 1e6))
    now = poll(9e5, 2e6, HOUR_CS + 6000, HOUR_CS + 4000)
    assert bridges(before, T0 + MINUTE, now) == [Bridge(2, T0 + 40_000, 0.0)]


def test_a_counter_that_cannot_have_started_then_gets_no_zero() -> None:
    """More octets than the link carries since that instant: the counter was not set back."""
    before = last(poll(1e6, 1e12))
    now = poll(2e9, 1e12 + 5, HOUR_CS + 6000, HOUR_CS + 4000)
    assert bridges(before, T0 + MINUTE, now) == []


def test_the_start_of_the_device_stays_until_it_restarts() -> None:
    """A slow answer and the overflow of sysUpTime after 497 days change nothing."""
    range_ms = 2**32 * 10
    before = last(poll(0.0, 0.0, 2.0**32 - 3000))
    boot_ms = before.boot_ms
    assert boot_ms == T0 - range_ms + 30_000
    slow = poll(0.0, 0.0, 3000.0 - 200)
    assert PLAN.boot_ms(before, T0 + MINUTE, slow) == boot_ms
    assert PLAN.boot_ms(before, T0 + MINUTE, poll(0.0, 0.0, 1000.0)) == T0 + 50_000


def test_starts_are_claimed_only_where_they_are_certain() -> None:
    """A counter that fell has a start, a counter that counts on over a restart has none."""
    plan = CounterPlan(SHAPE, all_counters=True)
    before = last(poll(1e6, 1e6), plan=plan)

    def starts(values: list[float]) -> dict[int, int]:
        return plan.starts(before, plan.last_poll(before, T0 + MINUTE, values), values)

    booted_ms = T0 - 3_600_000
    assert starts(poll(2e6, 2e6, HOUR_CS + 6000)) == {1: booted_ms, 2: booted_ms}
    assert starts(poll(5e5, 2e6, 3000.0)) == {1: T0 + 30_000}
    assert starts(poll(5e5, 2e6, math.nan)) == {}

    told = poll(9e5, 2e6, HOUR_CS + 6000, HOUR_CS + 4000)
    assert starts(told) == {1: T0 + 40_000, 2: T0 + 40_000}


def prom_increase(values: Sequence[float]) -> float:
    """Return the growth as PromQL counts it: a fall is a restart at 0."""
    total = 0.0
    for before, now in itertools.pairwise(values):
        total += now if now < before else now - before
    return total


@given(
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(1_000, 80_000),
)
def test_promql_counts_what_the_verdict_counts(before: int, now: int, span_ms: int) -> None:
    """Wherever the verdict has a rate, PromQL over the bridged samples has the same growth."""
    at_ms = T0 + span_ms
    first = poll(before, 0.0)
    second = poll(now, 0.0, HOUR_CS + span_ms / 10)
    found = bridges(last(first), at_ms, second)
    added = [bridge.value for bridge in found if bridge.column == 1]
    assert all(T0 < bridge.at_ms < at_ms for bridge in found)

    points = [
        Point(T0, before, HOUR_CS, 0.0, 100e6 / 8),
        Point(at_ms, now, HOUR_CS + span_ms / 10, 0.0, 100e6 / 8),
    ]
    rate = counters.rate(points[0], points[1], 32, MINUTE)
    if rate.verdict in (Verdict.OK, Verdict.WRAP):
        assert rate.per_second is not None
        expected = rate.per_second * span_ms / 1000
        assert abs(prom_increase([before, *added, now]) - expected) <= 1e-6 * max(1, expected)
    else:
        assert added == []
