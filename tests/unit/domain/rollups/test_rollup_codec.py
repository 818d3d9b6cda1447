"""The bytes of a roll-up: totals exact, peaks never too low, damaged bytes refused."""

from __future__ import annotations

from functools import cache
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from poller.domain.metrics.reading import Kind
from poller.domain.rollups import day_rollup, rollup, rollup_codec
from poller.domain.rollups.rollup import Buckets, CounterTable, GaugeTable, Rollup, StateTable
from poller.domain.rollups.rollup_codec import RollupError
from poller.domain.rollups.sample_columns import SeriesRef
from tests.unit.domain.rollups.history_polls import DAY, MINUTE, START, one_series, series, shaped

BUCKETS = 4
REFS = [SeriesRef(-5, 0), SeriesRef(-5, 7), SeriesRef(2**62, 3)]

counts = st.lists(st.integers(0, 2**50).map(float), min_size=BUCKETS, max_size=BUCKETS)
numbers = st.lists(st.floats(-1e30, 1e30), min_size=BUCKETS, max_size=BUCKETS)
times = st.lists(st.integers(0, 300_000), min_size=BUCKETS, max_size=BUCKETS)
shares = st.lists(st.floats(0, 1), min_size=BUCKETS, max_size=BUCKETS)


@st.composite
def rollups(draw: st.DrawFn) -> Rollup:
    known_ms = np.array([draw(times) for _ in REFS], np.int64)
    total = np.where(known_ms > 0, np.array([draw(counts) for _ in REFS]), 0.0)
    mean = np.divide(total * 1000, known_ms, out=np.zeros(total.shape), where=known_ms > 0)
    high = mean * (1 + np.array([draw(shares) for _ in REFS]))
    low = mean * np.array([draw(shares) for _ in REFS])
    counters = CounterTable(REFS, known_ms, np.zeros_like(known_ms), total, low, high, known_ms % 3)
    values = np.array([draw(numbers) for _ in REFS])
    gauges = GaugeTable(REFS, known_ms, values, values - 1, values + 1, values)
    states = StateTable(REFS[:1], np.array([2.0]), known_ms[:1])
    return Rollup(Buckets(START, 300_000, BUCKETS), counters, gauges, states)


@settings(max_examples=40, deadline=None)
@given(original=rollups())
def test_a_roll_up_comes_back(original: Rollup) -> None:
    """Times, totals and resets are exact; peaks are rounded outwards; gauges keep 7 digits."""
    found = rollup_codec.decode(rollup_codec.encode(original))
    assert found.buckets == original.buckets
    assert found.shape_ids == original.shape_ids
    for stat in ("known_ms", "gap_ms", "total", "resets"):
        assert np.array_equal(getattr(found.counters, stat), getattr(original.counters, stat))
    high, low = original.counters.high, original.counters.low
    assert (found.counters.high >= high * (1 - 1e-8)).all()
    assert np.allclose(found.counters.high, high, rtol=0.0014)
    assert (found.counters.low <= low * (1 + 1e-8)).all()
    assert np.allclose(found.gauges.mean, original.gauges.mean, rtol=1e-6)
    assert np.array_equal(found.states.lasted_ms, original.states.lasted_ms)
    assert found.states.refs == original.states.refs


def test_a_reader_gets_the_series_that_it_wants_only() -> None:
    """The rows of one series are those that it has among all."""
    all_series = rollup_codec.decode(_a_day())
    [octets] = all_series.counters.refs
    found = rollup_codec.decode(_a_day(), lambda ref: ref == octets)
    assert np.array_equal(found.counters.total, all_series.counters.total)
    assert np.array_equal(found.counters.high, all_series.counters.high)
    assert (len(all_series.gauges.refs), len(found.gauges.refs)) == (1, 0)
    [uptime] = all_series.gauges.refs
    other = rollup_codec.decode(_a_day(), lambda ref: ref == uptime)
    assert np.array_equal(other.gauges.mean, all_series.gauges.mean)
    assert not other.counters.refs


@settings(max_examples=20, deadline=None)
@given(original=rollups())
def test_a_roll_up_that_is_stored_again_does_not_drift(original: Rollup) -> None:
    """Rounding happens once, however often a row is read and written."""
    once = rollup_codec.decode(rollup_codec.encode(original))
    twice = rollup_codec.decode(rollup_codec.encode(once))
    assert np.allclose(twice.counters.high, once.counters.high, rtol=1e-12)
    assert np.allclose(twice.counters.low, once.counters.low, rtol=1e-12)
    assert np.array_equal(twice.gauges.mean, once.gauges.mean)


def test_gauges_of_any_size_come_back() -> None:
    """A number that float32 cannot hold is neither endless nor zero."""
    values = (1.5e39, 2.5e39, 1e300, 1e-50, -3e-60, 0.1)
    samples = [(START + n * MINUTE, values[n // 20 % 6]) for n in range(120)]
    polls = shaped(one_series(series("load"), samples))
    original = day_rollup.roll_up(polls, Buckets(START, 300_000, 24), MINUTE)
    assert original is not None
    found = rollup_codec.decode(rollup_codec.encode(original)).gauges
    for stat in ("mean", "low", "high", "last"):
        assert np.allclose(getattr(found, stat), getattr(original.gauges, stat), rtol=1e-6, atol=0)


@cache
def _a_day() -> bytes:
    samples = [(START + n * MINUTE, n * 1_000.0 + n % 7) for n in range(1440)]
    polls = shaped(one_series(series("ifHCInOctets", Kind.COUNTER, 64), samples, uptime=True))
    found = day_rollup.roll_up(polls, rollup.of_day(START, 300_000), MINUTE)
    assert found is not None
    return rollup_codec.encode(found)


@settings(max_examples=60, deadline=None)
@given(data=st.binary(max_size=200))
def test_bytes_that_are_no_roll_up_are_refused(data: bytes) -> None:
    """Any bytes are either a roll-up or an error of ours."""
    for prefix in (b"", _a_day()[:1], _a_day()[:40]):
        with pytest.raises(RollupError):
            rollup_codec.decode(prefix + data)


@settings(max_examples=100, deadline=None)
@given(place=st.integers(0, 10_000), value=st.integers(0, 255))
def test_a_damaged_row_is_refused_or_harmless(place: int, value: int) -> None:
    """A flipped byte raises nothing but RollupError."""
    data = bytearray(_a_day())
    data[place % len(data)] = value
    try:
        found = rollup_codec.decode(bytes(data))
    except RollupError:
        return
    assert found.buckets.count <= rollup_codec.MAXIMUM_BUCKETS


def test_a_claim_of_many_bytes_costs_no_memory() -> None:
    """The size is refused before anything is made."""
    for place in (1, 5):
        bomb = bytearray(_a_day())
        bomb[place : place + 4] = b"\xff" * 4
        with pytest.raises(RollupError, match="more than a roll-up has"):
            rollup_codec.decode(bytes(bomb))


def test_a_series_that_never_moves_costs_next_to_nothing() -> None:
    """A day of 288 buckets of an idle counter and a constant gauge: less than 120 bytes."""
    samples = [(START + n * MINUTE, 5.0) for n in range(DAY // MINUTE + 1)]
    polls = shaped(one_series(series("ifInErrors", Kind.COUNTER, 32), samples))
    found = day_rollup.roll_up(polls, rollup.of_day(START, 300_000), MINUTE)
    assert found is not None
    assert len(rollup_codec.encode(found)) < 120


@settings(max_examples=20, deadline=None)
@given(originals=st.lists(rollups(), min_size=1, max_size=4))
def test_many_rows_are_read_at_once_as_one_by_one(originals: list[Rollup]) -> None:
    """Rows of other series, and of other forms of the same series, do not disturb each other."""
    rows = [rollup_codec.encode(original) for original in originals]
    rows.insert(1, _a_day())
    alone = [rollup_codec.decode(row) for row in rows]
    assume(not any(one.buckets.goes_on_in(later.buckets) for one, later in pairwise(alone)))
    for one, found in zip(alone, rollup_codec.decode_all(rows), strict=True):
        assert found.buckets == one.buckets
        for table in ("counters", "gauges", "states"):
            expected, got = getattr(one, table), getattr(found, table)
            assert got.refs == expected.refs
            for stat in ("known_ms", "total", "low", "high", "last", "lasted_ms", "values"):
                if hasattr(expected, stat):
                    assert np.array_equal(getattr(got, stat), getattr(expected, stat))
    assert rollup_codec.shape_ids(rows) == frozenset().union(*(one.shape_ids for one in alone))
