"""Roll-ups: growth is split at the edges of buckets, and what is unknown stays unknown."""

from __future__ import annotations

import math
from collections.abc import Iterable

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poller.domain.metrics import rates
from poller.domain.metrics.rates import Poll, RateQuery
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet
from poller.domain.rollups import day_rollup, rollup
from poller.domain.rollups.rollup import FIVE_MINUTES_MS, Buckets, Rollup
from tests.unit.domain.rollups.history_polls import (
    DAY,
    HOUR,
    MINUTE,
    START,
    one_series,
    series,
    shaped,
)

OCTETS = series("ifHCInOctets", Kind.COUNTER, 64)
NARROW = series("ifInErrors", Kind.COUNTER, 32)
TEMPERATURE = series("temperature")
STATUS = series("ifOperStatus")
HOUR_OF_BUCKETS = Buckets(START, FIVE_MINUTES_MS, 12)


def rolled(polls: Iterable[Poll], buckets: Buckets = HOUR_OF_BUCKETS) -> Rollup:
    found = day_rollup.roll_up(shaped(polls), buckets, MINUTE)
    assert found is not None
    return found


def every_minute(first: int, minutes: int, start: float = 0) -> list[tuple[int, float]]:
    """Samples a minute apart that grow by 600, from `first` minutes after the start on."""
    return [(START + (first + n) * MINUTE, start + n * 600) for n in range(minutes)]


def test_growth_is_split_at_the_edge_of_a_bucket() -> None:
    """A step that crosses an edge gives each side its share of time, and no count is lost."""
    samples = [(START - 20_000, 0.0), (START + 40_000, 600.0), (START + 100_000, 600.0)]
    table = rolled(one_series(OCTETS, samples)).counters
    assert table.total[0, 0] == 400
    assert table.known_ms[0].tolist() == [100_000, *[0] * 11]
    assert (table.low[0, 0], table.high[0, 0]) == (0, 10)

    before = rolled(one_series(OCTETS, samples), Buckets(START - HOUR, FIVE_MINUTES_MS, 12))
    assert before.counters.total[0, -1] == 200
    assert before.counters.known_ms[0, -1] == 20_000


def test_a_reboot_in_a_bucket_leaves_its_step_unknown() -> None:
    """The totals are those before and after; the minute of the reboot is missing, and counted."""
    samples = [*every_minute(0, 8), *every_minute(8, 8, start=5)]
    shape = SeriesSet((NARROW, Series("sysUpTime", (), Kind.GAUGE)))
    polls = []
    for minute, (at_ms, value) in enumerate(samples):
        uptime_cs = 8_640_000 + minute * 6_000 if minute < 8 else 3_000 + (minute - 8) * 6_000
        polls.append((at_ms, ReadingSet(shape, [value, uptime_cs])))
    table = rolled(polls).counters
    assert table.resets[0].tolist() == [0, 1, *[0] * 10]
    assert table.known_ms[0].tolist() == [300_000, 240_000, 300_000, *[0] * 9]
    assert table.total[0].tolist() == [3_000, 2_400, 3_000, *[0] * 9]
    assert table.high[0, 1] == 10


def test_a_wrap_in_a_bucket_is_corrected() -> None:
    """A counter of 32 bits that was full goes on growing."""
    samples = every_minute(0, 11, start=2**32 - 1_000)
    values = [(at_ms, value % 2**32) for at_ms, value in samples]
    table = rolled(one_series(NARROW, values, uptime=True)).counters
    assert table.total[0].tolist() == [3_000, 3_000, *[0] * 10]
    assert table.known_ms[0].tolist() == [300_000, 300_000, *[0] * 10]
    assert not table.resets.any()


def test_a_gap_is_an_average_and_apart_from_what_is_known() -> None:
    """Nobody knows when within the gap the counter grew; the total is right all the same."""
    samples = [*every_minute(0, 3), (START + 12 * MINUTE, 7_200.0)]
    table = rolled(one_series(OCTETS, samples)).counters
    assert table.known_ms[0, :3].tolist() == [120_000, 0, 0]
    assert table.gap_ms[0, :3].tolist() == [180_000, 300_000, 120_000]
    assert table.total[0, :3].tolist() == [3_000, 3_000, 1_200]
    assert table.high[0, :3].tolist() == [10, 10, 10]


def test_a_gauge_holds_until_its_next_sample_or_two_and_a_half_intervals() -> None:
    """The mean is by time; a value that is too old says nothing."""
    samples = [(START, 20.0), (START + MINUTE, 30.0), (START + 2 * MINUTE, math.nan)]
    table = rolled(one_series(TEMPERATURE, samples)).gauges
    assert table.known_ms[0].tolist() == [210_000, *[0] * 11]
    assert table.mean[0, 0] == pytest.approx((20 * 60 + 30 * 150) / 210)
    assert (table.low[0, 0], table.high[0, 0], table.last[0, 0]) == (20, 30, 30)


def test_one_huge_sample_spoils_no_other_bucket() -> None:
    """An agent that answers 2**64 - 1 once: means and totals of the hour after it are right."""
    readings = [40.0 + minute % 3 for minute in range(61)]
    readings[2] = 2.0**64
    samples = [(START + minute * MINUTE, value) for minute, value in enumerate(readings)]
    gauges = rolled(one_series(TEMPERATURE, samples)).gauges
    for bucket in range(1, 12):
        held = readings[bucket * 5 : bucket * 5 + 5]
        assert gauges.mean[0, bucket] == pytest.approx(sum(held) / 5)

    counts = every_minute(0, 61)
    counts[2] = (counts[2][0], 2.0**64)
    plain = series("errors", Kind.COUNTER, 0)
    assert rolled(one_series(plain, counts)).counters.total[0, 1:].tolist() == [3_000.0] * 11


def test_a_state_is_the_time_of_each_value() -> None:
    """A link that was down for two minutes: a mean of 1.4 would say nothing."""
    states = (1.0, 1.0, 2.0, 2.0, 1.0, 1.0)
    samples = [(START + minute * MINUTE, state) for minute, state in enumerate(states)]
    table = rolled(one_series(STATUS, samples)).states
    lasted = dict(zip(table.values.tolist(), table.lasted_ms[:, 0].tolist(), strict=True))
    assert lasted == {1.0: 180_000, 2.0: 120_000}


def test_a_series_keeps_its_row_when_the_device_numbers_it_anew() -> None:
    """The name of the interface identifies it; its place is that of the newest shape."""
    renumbered = series("ifHCInOctets", Kind.COUNTER, 64, index=9)
    polls = [
        *one_series(OCTETS, every_minute(0, 5)),
        *one_series(renumbered, every_minute(5, 6, start=3_000)),
    ]
    result = rolled(polls)
    [ref] = result.counters.refs
    assert ref.shape_id == SeriesSet((renumbered,)).id
    assert result.counters.total[0, :2].tolist() == [3_000, 3_000]


def test_polls_that_say_nothing_about_the_buckets_have_no_roll_up() -> None:
    """A single sample of a counter is no growth."""
    polls = one_series(OCTETS, [(START, 5.0)])
    assert day_rollup.roll_up(shaped(polls), HOUR_OF_BUCKETS, MINUTE) is None
    assert day_rollup.roll_up([], HOUR_OF_BUCKETS, MINUTE) is None


def test_an_hour_has_the_sums_and_extremes_of_its_buckets() -> None:
    """Averages over gaps count for the extremes only where there is nothing else."""
    samples = [*every_minute(0, 11), (START + 40 * MINUTE, 6_000 + 27_000.0)]
    hour = rollup.coarser(rolled(one_series(OCTETS, samples)), 12)
    table = hour.counters
    assert hour.buckets == Buckets(START, HOUR, 1)
    assert table.total.tolist() == [[33_000]]
    assert (table.known_ms[0, 0], table.gap_ms[0, 0]) == (10 * MINUTE, 30 * MINUTE)
    assert (table.low[0, 0], table.high[0, 0]) == (10, 10)
    gauges = rollup.coarser(rolled(one_series(TEMPERATURE, every_minute(0, 20))), 12).gauges
    assert (gauges.low[0, 0], gauges.high[0, 0], gauges.last[0, 0]) == (0, 19 * 600, 19 * 600)
    assert gauges.mean[0, 0] == pytest.approx(rolled_mean(20))


def rolled_mean(samples: int) -> float:
    """The mean of `every_minute`, whose last sample holds for 2.5 minutes."""
    weighted = sum(n * 600 for n in range(samples - 1)) + (samples - 1) * 600 * 2.5
    return weighted / (samples + 1.5)


steps_ms = st.sampled_from((7_001, 59_998, MINUTE, 61_003, 400_000, 7 * HOUR))
growth_of_polls = st.lists(st.tuples(steps_ms, st.integers(0, 10**7)), min_size=2, max_size=60)


@settings(max_examples=30, deadline=None)
@given(story=growth_of_polls)
def test_the_days_of_a_month_add_up_to_what_the_verdict_engine_counted(
    story: list[tuple[int, int]],
) -> None:
    """Every day is rolled up alone, from its polls and the two beside them; nothing is lost."""
    samples = [(START + 5_003, 10**9 + 0.0)]
    for after_ms, growth in story:
        samples.append((samples[-1][0] + after_ms, samples[-1][1] + growth))
    polls = one_series(OCTETS, samples)
    [line] = rates.compute(polls, RateQuery(MINUTE)).lines
    expected = sum((rate.per_second or 0) * rate.seconds for rate in line.rates)

    total, known_ms = 0.0, 0
    for day_ms in range(START, samples[-1][0] + 1, DAY):
        first = max(0, sum(at_ms < day_ms for at_ms, _ in samples) - 1)
        end = sum(at_ms < day_ms + DAY for at_ms, _ in samples) + 1
        day = day_rollup.roll_up(
            shaped(polls[first:end]), rollup.of_day(day_ms, FIVE_MINUTES_MS), MINUTE
        )
        if day is not None:
            total += float(day.counters.total.sum())
            known_ms += int(np.sum(day.counters.known_ms + day.counters.gap_ms))
    assert total == pytest.approx(expected, abs=1)
    assert known_ms == samples[-1][0] - samples[0][0]
