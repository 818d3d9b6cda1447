"""How stale is it? Each source alone, and the interval it settles at in a simulated hour."""

from __future__ import annotations

import math
import random
import re
from collections.abc import Callable, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.reading import Kind, Reading, ReadingSet
from poller.domain.scheduling import interval, staleness
from poller.domain.scheduling.interval import Adaptive, Inputs
from poller.domain.scheduling.staleness import Evidence, Source

POLICY = Adaptive()  # 5 s, 10 s, 5 min
HOUR_MS = 3_600_000
DOCS = Path(__file__).parents[4] / "docs"
Polls = Callable[[], Iterator[ReadingSet | None]]
BEGIN_MS = 1_700_000_000_000


def old(age_ms: int, policy: Adaptive = POLICY) -> Evidence:
    return Evidence(policy, BEGIN_MS, BEGIN_MS - age_ms)


@pytest.mark.parametrize(
    ("age_ms", "max_ms", "expected"),
    [
        (0, 60_000, 0.0),
        (45_000, 60_000, 0.75),
        (600_000, 60_000, 1.0),
        (-5_000, 60_000, 0.0),  # a clock that was set back
        (150_000, 0, 0.5),  # no longest interval: five minutes
    ],
)
def test_the_age_of_the_data(age_ms: int, max_ms: int, expected: float) -> None:
    """Against the longest interval, from 0 to 1."""
    assert staleness.age(old(age_ms, Adaptive(5_000, 10_000, max_ms))) == pytest.approx(expected)


@pytest.mark.parametrize("source", [staleness.steady, staleness.age, staleness.change])
def test_a_target_without_a_good_poll_is_as_stale_as_possible(source: Source) -> None:
    """A target without a good poll has the score 1."""
    assert source(Evidence(POLICY, BEGIN_MS, ok_ms=0)) == 1.0


def test_steady_starts_at_the_base_and_shortens_with_age() -> None:
    """The interval is the base after a good poll, and the shortest for old data."""
    wanted = [
        interval.interval_of_score(POLICY, staleness.steady(old(age)))
        for age in (0, 60_000, 150_000, 300_000, 10**9)
    ]
    assert wanted == pytest.approx([10_000, 9_000, 7_500, 5_000, 5_000])


@given(
    st.integers(1_000, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**8),
    st.integers(-(10**6), 10**10),
)
def test_steady_is_never_longer_than_the_base(low: int, more: int, most: int, age_ms: int) -> None:
    """The limit holds for any bounds, also for equal ones."""
    policy = Adaptive(low, low + more, low + more + most)
    score = staleness.steady(old(age_ms, policy))
    assert 0 <= score <= 1
    assert interval.interval_of_score(policy, score) <= policy.base_ms + 1e-3


def gauges(*values: float, name: str = "g", counter: float = 0.0) -> ReadingSet:
    found = [Reading(name, value, {"i": str(number)}) for number, value in enumerate(values)]
    return ReadingSet.of([*found, Reading("c", counter, kind=Kind.COUNTER)])


def test_the_share_of_values_that_changed() -> None:
    """Counters do not count, a NaN that stays is no change, what comes and goes is one."""
    first = gauges(1, 2, 3, math.nan)
    assert staleness.share_changed(first, gauges(1, 2, 4, math.nan, counter=7)) == pytest.approx(
        0.25
    )
    assert staleness.share_changed(
        first, ReadingSet(first.series, [1, 9, 9, math.nan, 7])
    ) == pytest.approx(0.5)
    assert staleness.share_changed(first, gauges(1, 2, 3)) == pytest.approx(0.25)
    assert staleness.share_changed(first, gauges(1, 2, 3, math.nan, name="other")) == 1.0
    info = [ReadingSet.of([Reading("version", 1.0, {"v": v}, Kind.INFO)]) for v in ("7.1", "7.2")]
    assert staleness.share_changed(*info) == 1.0


def test_what_cannot_be_compared_is_neutral() -> None:
    """A first poll, a failed poll and a device without gauges have the score of `steady`."""
    only_counters = ReadingSet.of([Reading("c", 1.0, kind=Kind.COUNTER)])
    for before, after in ((None, gauges(1)), (gauges(1), None), (only_counters, only_counters)):
        found = staleness.change(Evidence(POLICY, BEGIN_MS, BEGIN_MS, after, before))
        assert found == pytest.approx(POLICY.neutral)


def quiet() -> Iterator[ReadingSet]:
    same = gauges(1, 2, 3)
    return (same for _ in count())


def busy() -> Iterator[ReadingSet]:
    return (gauges(number, -number) for number in count())


def half() -> Iterator[ReadingSet]:
    return (gauges(number, 1) for number in count())


def silent() -> Iterator[None]:
    return (None for _ in count())


def simulated(
    source: Source, polls: Iterator[ReadingSet | None], answers: bool = True
) -> list[int]:
    """The intervals of an hour, each poll taking 200 ms, with all of the jitter."""
    generator, now_ms, ok_ms = random.Random(3), BEGIN_MS, BEGIN_MS
    intervals: list[int] = []
    previous: int | None = None
    before: ReadingSet | None = None
    failures = 0
    while now_ms < BEGIN_MS + HOUR_MS:
        finished_ms, readings = now_ms + 200, next(polls)
        ok_ms, failures = (finished_ms, 0) if answers else (ok_ms, failures + 1)
        score = source(Evidence(POLICY, finished_ms, ok_ms, readings, before))
        decision = interval.adapt(POLICY, Inputs(score, failures, 0, previous, generator.random()))
        intervals.append(interval.next_ms(now_ms, decision.chosen_ms, finished_ms) - now_ms)
        now_ms, previous, before = now_ms + intervals[-1], decision.smoothed_ms, readings
    return intervals


@pytest.mark.parametrize(
    ("source", "polls", "settles_ms"),
    [
        (staleness.steady, silent, 10_000),
        (staleness.age, silent, 300_000 * 0.9875),  # jitter can only shorten the longest interval
        (staleness.change, silent, 10_000),
        (staleness.change, quiet, 300_000 * 0.9875),
        (staleness.change, half, 152_500),
        (staleness.change, busy, 5_000 * 1.0125),  # and only lengthen the shortest
    ],
    ids=["steady", "age", "change unknown", "change quiet", "change half", "change busy"],
)
def test_where_a_healthy_target_settles(source: Source, polls: Polls, settles_ms: float) -> None:
    """The interval after a simulated hour equals the table of docs/intervals.md."""
    later = simulated(source, polls())[-10:]
    assert sum(later) / len(later) == pytest.approx(settles_ms, rel=0.03)
    assert all(abs(each - settles_ms) <= 0.07 * settles_ms for each in later)


def test_a_steady_target_is_polled_as_often_as_a_fixed_one_of_its_base() -> None:
    """The numbers of polls in an hour are equal."""
    found = simulated(staleness.steady, silent())
    assert 355 <= len(found) <= 365
    assert min(found) >= 9_500


def test_a_dead_target_is_confirmed_quickly() -> None:
    """Five polls in half a minute open the breaker; no interval is below the shortest."""
    found = simulated(staleness.steady, silent(), answers=False)
    assert sum(found[:4]) < 30_000
    assert min(found) >= 5_000


def test_the_source_in_the_docs_works() -> None:
    """A plugin author starts from it."""
    [text] = re.findall(r"```python\n(.*?)```", (DOCS / "intervals.md").read_text(), re.DOTALL)
    names: dict[str, Any] = {}
    exec(text, names)  # our own page
    for state, expected in ((6, POLICY.neutral), (1, 1.0)):
        readings = ReadingSet.of([Reading("bgpPeerState", state)])
        assert names["bgp"](Evidence(POLICY, BEGIN_MS, BEGIN_MS, readings)) == pytest.approx(
            expected
        )
    assert names["bgp"].comparing
