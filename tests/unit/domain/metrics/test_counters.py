"""Rates: true, corrected or refused, never guessed."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from poller.domain.metrics import counters
from poller.domain.metrics.counters import Point, Rate, Verdict

MINUTE = 60_000
FULL_32, FULL_64 = 2**32, 2**64
#: 100 Mbit/s in octets: not enough to fill 32 bits in a minute.
FAST_ETHERNET = 12_500_000.0
DAY_CS = 8_640_000


def point(value: float, minute: float = 0, **known: Any) -> Point:
    return Point(round(minute * MINUTE), value, **known)


def judged(before: Point, now: Point, width: int = 64) -> Rate:
    return counters.rate(before, now, width, MINUTE)


def test_a_counter_that_grew_has_a_rate() -> None:
    """Growth by seconds, however long that was."""
    assert judged(point(1_000), point(61_000, 1)) == Rate(MINUTE, 60.0, Verdict.OK, 1_000.0)
    assert judged(point(5), point(5, 1)).per_second == 0
    assert judged(point(0), point(90, 1.5)).per_second == 1


def test_the_first_sample_has_none() -> None:
    """A rate takes two."""
    rate = counters.rate(None, point(5), 64, MINUTE)
    assert (rate.verdict, rate.per_second, rate.seconds) == (Verdict.FIRST, None, 0)


@pytest.mark.parametrize("minute", [1, 0.5])
def test_without_time_there_is_no_rate(minute: float) -> None:
    """Two samples of one moment, or a clock that went back."""
    rate = judged(point(0, 1), point(100, minute))
    assert (rate.verdict, rate.per_second) == (Verdict.IMPLAUSIBLE, None)


# --- full or set back ---------------------------------------------------------------------------

LINK = {"max_per_s": FAST_ETHERNET}
UP = {"uptime_cs": 30 * DAY_CS}
UP_LATER = {"uptime_cs": 30 * DAY_CS + 6_000}


@pytest.mark.parametrize(
    ("width", "before", "now", "verdict", "growth"),
    [
        # A link that can have carried the difference: it was full.
        (32, point(FULL_32 - 1_000, **LINK), point(5_000, 1, **LINK), Verdict.WRAP, 6_000),
        (32, point(FULL_32 - 1, **LINK), point(0, 1, **LINK), Verdict.WRAP, 1),
        (64, point(FULL_64 - 2**20, **LINK), point(2**20, 1, **LINK), Verdict.WRAP, 2**21),
        # One that cannot: it was set back.
        (32, point(1_000_000_000, **LINK), point(5_000, 1, **LINK), Verdict.RESET, None),
        (64, point(FULL_64 / 2, **LINK), point(5_000, 1, **LINK), Verdict.RESET, None),
        (64, point(FULL_32 - 1_000, **LINK), point(5_000, 1, **LINK), Verdict.RESET, None),
        # Without a speed, 32 bits wrap only when almost full and the agent is up, 64 bits never.
        (32, point(FULL_32 - 1_000, **UP), point(5_000, 1, **UP_LATER), Verdict.WRAP, 6_000),
        (32, point(1_000_000, **UP), point(5_000, 1, **UP_LATER), Verdict.RESET, None),
        (32, point(FULL_32 - 1_000), point(5_000, 1), Verdict.RESET, None),
        (64, point(FULL_64 - 4_096, **UP), point(5_000, 1, **UP_LATER), Verdict.RESET, None),
        # Nor is its width.
        (
            0,
            point(FULL_32 - 1_000, **LINK, **UP),
            point(5_000, 1, **LINK, **UP_LATER),
            Verdict.RESET,
            None,
        ),
        # A value that the width has no room for.
        (32, point(2.0**40), point(5_000, 1), Verdict.RESET, None),
    ],
)
def test_a_counter_that_went_down_was_full_or_set_back(
    width: int, before: Point, now: Point, verdict: Verdict, growth: float | None
) -> None:
    """Full only where that is proven; a rate only where it was full."""
    rate = judged(before, now, width)
    assert rate.verdict is verdict
    assert rate.per_second == (None if growth is None else pytest.approx(growth / 60))
    assert rate.reason


@pytest.mark.parametrize(
    ("before_cs", "now_cs", "minutes", "verdict"),
    [
        (30 * DAY_CS, 30 * DAY_CS + 6_000, 1, Verdict.OK),
        (30 * DAY_CS, 30 * DAY_CS + 5_500, 1, Verdict.OK),  # 5 s off: a poll takes its time
        (
            30 * DAY_CS,
            30 * DAY_CS + 8_500,
            1,
            Verdict.OK,
        ),  # 25 s ahead: the last poll was a slow one
        (30 * DAY_CS, 30 * DAY_CS, 1, Verdict.OK),  # a clock that stands still proves nothing
        (30 * DAY_CS, 3_000, 1, Verdict.RESET),
        (30 * DAY_CS, 0, 1, Verdict.RESET),
        (30 * DAY_CS, 20 * DAY_CS, 1, Verdict.RESET),  # went back: another agent
        (30 * DAY_CS, 90 * DAY_CS, 1, Verdict.RESET),  # jumped ahead
        (
            2_000,
            25_000,
            5,
            Verdict.RESET,
        ),  # more than before, and yet: restarted 250 s ago, of 300 s
        (2_000, 32_000, 5, Verdict.OK),
        (300, 5_900, 1, Verdict.RESET),  # 3 s after a restart, another restart looks the same
        (300, 6_300, 1, Verdict.OK),
        # 497 days: full, as predicted.
        (2**32 - 3_000, 3_000, 1, Verdict.OK),
        (2**32 - 3_000, 2_500, 1, Verdict.OK),
        (2**32 - 3_000, 5_900, 1, Verdict.RESET),  # restarted a minute ago, half a minute too early
        (2**32 - 1, 5_999, 1, Verdict.OK),
        (2**32 - 60_000, 3_000, 1, Verdict.RESET),
    ],
)
def test_the_uptime_proves_a_restart(
    before_cs: float, now_cs: float, minutes: float, verdict: Verdict
) -> None:
    """A higher counter proves nothing, and an uptime that starts over is no restart."""
    before, now = point(1_000, uptime_cs=before_cs), point(61_000, minutes, uptime_cs=now_cs)
    assert counters.rate(before, now, 64, round(minutes * MINUTE)).verdict is verdict


@pytest.mark.parametrize(
    ("before_cs", "now_cs", "verdict"),
    [
        (0, 0, Verdict.OK),
        (4_711, 4_711, Verdict.OK),
        (0, 4_711, Verdict.RESET),
        (None, 4_711, Verdict.OK),
    ],
)
def test_a_discontinuity_is_a_reset(
    before_cs: float | None, now_cs: float, verdict: Verdict
) -> None:
    """A changed ifCounterDiscontinuityTime is a reset; a missing one proves nothing."""
    before, now = point(1_000, discontinuity_cs=before_cs), point(2_000, 1, discontinuity_cs=now_cs)
    assert judged(before, now).verdict is verdict


# --- too fast, too far ----------------------------------------------------------------------------


def test_more_than_a_link_can_carry_is_no_rate() -> None:
    """The claimed rate is kept beside, for the search of the reason."""
    before, now = point(0, **LINK), point(60 * 20 * FAST_ETHERNET, 1, **LINK)
    rate = judged(before, now)
    assert (rate.verdict, rate.per_second, rate.claimed) == (
        Verdict.IMPLAUSIBLE,
        None,
        20 * FAST_ETHERNET,
    )


@pytest.mark.parametrize(
    ("share", "verdict"), [(1.0, Verdict.OK), (1.25, Verdict.OK), (1.4, Verdict.IMPLAUSIBLE)]
)
def test_a_full_link_is_plausible(share: float, verdict: Verdict) -> None:
    """An agent that refreshes its counters every ten seconds stays plausible."""
    assert judged(point(0, **LINK), point(60 * share * FAST_ETHERNET, 1, **LINK)).verdict is verdict


def test_a_link_that_became_slower_is_held_against_the_faster_of_both() -> None:
    """The speed may have changed just before the poll."""
    before, now = point(0, **LINK), point(60 * FAST_ETHERNET, 1, max_per_s=FAST_ETHERNET / 10)
    assert judged(before, now).verdict is Verdict.OK


@pytest.mark.parametrize(
    ("minutes", "verdict"), [(1, Verdict.OK), (2, Verdict.OK), (3, Verdict.GAP)]
)
def test_after_lost_polls_a_rate_is_an_average_with_the_verdict_gap(
    minutes: int, verdict: Verdict
) -> None:
    """One lost poll is no gap."""
    rate = judged(point(0), point(6_000 * minutes, minutes))
    assert (rate.verdict, rate.per_second) == (verdict, 100)


def test_a_counter_too_small_for_its_link_has_a_lower_bound() -> None:
    """A 32-bit octet counter on 10 Gbit/s wraps several times a minute."""
    fast = {"max_per_s": 1.25e9}
    rate = judged(point(0, **fast), point(6_000, 1, **fast), 32)
    assert (rate.verdict, rate.per_second) == (Verdict.GAP, 100)
    assert "at least" in rate.reason
    assert judged(point(6_000, **fast), point(0, 1, **fast), 32).verdict is Verdict.RESET
    assert judged(point(0, **fast), point(6_000, 1, **fast), 64).verdict is Verdict.OK


def test_what_is_no_number_was_not_polled() -> None:
    """The next sample is held against the one before it."""
    points = [point(0), point(math.nan, 1), point(math.inf, 1.5), point(120, 2)]
    assert [(rate.verdict, rate.per_second) for rate in counters.rates(points, 64, MINUTE)] == [
        (Verdict.FIRST, None),
        (Verdict.OK, 1),
    ]
    assert judged(point(-1e308), point(1e308, 1)).verdict is Verdict.IMPLAUSIBLE


def verdicts(*values: float, **known: Any) -> list[tuple[str, float | None]]:
    points = [point(value, minute, **known) for minute, value in enumerate(values)]
    return [(rate.verdict.value, rate.per_second) for rate in counters.rates(points, 64, MINUTE)]


def test_a_wrong_zero_between_two_samples_is_no_spike() -> None:
    """A counter that fell and returned gets the average over both spans."""
    assert verdicts(6e12, 0, 6e12 + 1_200, 6e12 + 1_260) == [
        ("first", None),
        ("reset", None),
        ("gap", 10),
        ("ok", 1),
    ]


def test_a_counter_that_fell_and_stays_low_was_set_back() -> None:
    """The next rate starts at the low value."""
    assert verdicts(6e12, 0, 600, 1_200) == [
        ("first", None),
        ("reset", None),
        ("ok", 10),
        ("ok", 10),
    ]


def test_after_a_restart_a_counter_may_soon_be_higher_than_ever() -> None:
    """The uptime proves the restart, so no sample is bridged."""
    points = [
        point(600, 0, uptime_cs=DAY_CS),
        point(0, 1, uptime_cs=3_000),
        point(6_000, 2, uptime_cs=9_000),
    ]
    found = [(rate.verdict.value, rate.per_second) for rate in counters.rates(points, 64, MINUTE)]
    assert found == [("first", None), ("reset", None), ("ok", 100)]


@given(st.integers(2**53, 2**64 - 1), st.integers(0, 2**40))
def test_beyond_53_bits_a_difference_is_off_by_one_step_at_most(start: int, growth: int) -> None:
    """A float64 counts in steps of up to 2,048 there; it never runs backwards."""
    end = min(start + growth, 2**64 - 1)
    rate = judged(point(float(start)), point(float(end), 1))
    assert rate.verdict is Verdict.OK
    assert rate.per_second is not None
    assert abs(rate.per_second * 60 - (end - start)) <= 2_048


# --- a device's life ------------------------------------------------------------------------------


@dataclass(frozen=True)
class Life:
    """A device with one counter of `width` bits on a link, polled once a minute; it may restart."""

    width: int
    max_per_s: float
    steps: list[
        tuple[float, bool, bool, float]
    ]  # share of the link, restart?, lost poll?, part of the minute
    start: int
    uptime_cs: int


@dataclass
class Poll:
    point: Point
    true_growth: int  # since the poll before
    restarted: bool


LIVES = st.builds(
    Life,
    st.sampled_from([32, 64]),
    st.sampled_from([125_000.0, 1_250_000.0, FAST_ETHERNET]),
    st.lists(
        st.tuples(
            st.floats(0, 1),
            st.booleans() | st.just(False),
            st.booleans() | st.just(False),
            st.floats(0.05, 0.95),
        ),
        min_size=1,
        max_size=30,
    ),
    st.integers(0, 2**64 - 1)
    | st.integers(2**64 - 2**31, 2**64 - 1)
    | st.integers(2**32 - 2**31, 2**32 - 1),
    st.integers(0, 2**32 - 1) | st.integers(2**32 - 20_000, 2**32 - 1),
)


def polled(life: Life) -> list[Poll]:
    """The points that a poller reads from the device."""
    full = 2**life.width
    value, uptime_cs = life.start % full, life.uptime_cs
    seen = [Poll(Point(0, float(value), uptime_cs, None, life.max_per_s), 0, False)]
    growth, restarted = 0, False
    for minute, (share, restarts, lost, part) in enumerate(life.steps, 1):
        counted = round(60 * share * life.max_per_s)
        growth += counted
        known_cs = max(uptime_cs, seen[-1].point.uptime_cs or 0)  # it may have started over unseen
        if restarts and known_cs < 2**32 - 6_000 * len(
            life.steps
        ):  # otherwise it looks like a start over after 497 days
            restarted, value, uptime_cs = (
                True,
                round(counted * (1 - part)),
                round(6_000 * (1 - part)),
            )
        else:
            value, uptime_cs = (value + counted) % full, (uptime_cs + 6_000) % 2**32
        if not lost:
            now = Point(minute * MINUTE, float(value), uptime_cs, None, life.max_per_s)
            seen.append(Poll(now, growth, restarted))
            growth, restarted = 0, False
    return seen


@given(LIVES)
@example(
    Life(
        32,
        125000.0,
        [(0.0, False, False, 0.8), (0.69, False, True, 0.28), (0.14, True, False, 0.125)],
        0,
        2**32 - 12_000,
    )
)
def test_no_life_of_a_device_yields_an_impossible_rate(life: Life) -> None:
    """A rate is never negative or faster than the link, and a restart has no rate."""
    seen = polled(life)
    for poll, rate in zip(
        seen, counters.rates([poll.point for poll in seen], life.width, MINUTE), strict=True
    ):
        assert not (poll.restarted and rate.per_second is not None)
        if rate.per_second is not None:
            most = life.max_per_s * counters.SPEED_MARGIN * (rate.seconds + counters.REFRESH_S)
            assert 0 <= rate.per_second * rate.seconds <= most


@given(LIVES)
def test_the_rates_of_a_life_add_up_to_its_traffic(life: Life) -> None:
    """With the verdict ok or wrap, rate times time is exactly what the device carried."""
    seen = polled(life)
    rates = list(counters.rates([poll.point for poll in seen], life.width, MINUTE))
    for poll, rate in zip(seen[1:], rates[1:], strict=True):
        if rate.verdict in (Verdict.OK, Verdict.WRAP):
            assert rate.per_second is not None
            step = 0.01 if life.width == 32 else 2_049  # of a float64 near 2**64
            assert abs(rate.per_second * rate.seconds - poll.true_growth) <= step


@given(LIVES)
def test_a_device_that_never_restarts_has_no_reset(life: Life) -> None:
    """Neither a full counter nor a full sysUpTime is a restart."""
    steps = [(share, False, False, part) for share, _, _, part in life.steps]
    seen = polled(replace(life, steps=steps))
    for rate in list(counters.rates([poll.point for poll in seen], life.width, MINUTE))[1:]:
        assert rate.verdict in (Verdict.OK, Verdict.WRAP)
