"""Judging by a sieve and from one poll to the next equals looking at everything."""

from __future__ import annotations

import math
from collections.abc import Sequence
from unittest.mock import patch

from hypothesis import given, settings
from hypothesis import strategies as st

from poller.domain.alerts import judgement
from poller.domain.alerts.judgement import Suspect
from poller.domain.alerts.judging.rule_set import Look
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.alerts.rule import Measure, Threshold
from poller.domain.metrics import counters
from poller.domain.metrics.counters import Point, Verdict
from tests.unit.domain.alerts.watched_polls import (
    BUSY,
    DOWN,
    FAST,
    HOT,
    IN_OCTETS,
    MINUTE_MS,
    Watcher,
)

#: Counters that rest, grow, run, start over, and come back after a wrong sample.
COUNTS = st.sampled_from([0.0, 1.0, 1e4, 7e4, 1e6, 4e9, 2.0**32 - 1, 5e12, math.nan])
VALUES = st.sampled_from([-70.0, 0.0, 55.0, 61.0, 1e9, math.nan, math.inf])
STATES = st.sampled_from([1.0, 2.0, 5.0, 7.0, math.nan])
SPEEDS = st.sampled_from([0.0, 10.0, 1000.0, math.nan])
WAITS = st.sampled_from([500, 30_000, MINUTE_MS, MINUTE_MS + 333, 10 * MINUTE_MS])
POLLS = st.lists(
    st.fixed_dictionaries(
        {
            IN_OCTETS: st.tuples(COUNTS, COUNTS),
            "ifInErrors": st.tuples(COUNTS, COUNTS),
            "temperature": st.tuples(VALUES, VALUES),
            "ifOperStatus": st.tuples(STATES, STATES),
            "ifAdminStatus": st.tuples(STATES, STATES),
            "ifHighSpeed": st.tuples(SPEEDS, SPEEDS),
            "sysUpTime": st.sampled_from([1e4, 1e7, math.nan]),
        }
    ),
    max_size=6,
)
RULES = (
    *(HOT, BUSY, FAST, DOWN),
    Threshold("temperature", below=0.0, clear=10.0),
    Threshold("ifInErrors", Measure.RATE, below=5.0),
    Threshold(IN_OCTETS, Measure.PERCENT_OF_SPEED, below=1.0),
)


def everything(
    plan: Plan, poll: PollToJudge, packed: bytes, now: SeenPoll, before: SeenPoll | None
) -> list[Suspect]:
    """Suspect every series: what the sieve must not hide anything of."""
    return [Suspect(look, place) for look in Look for place in range(len(plan.watched(look)))]


@settings(deadline=None)
@given(POLLS, st.lists(WAITS, min_size=6, max_size=6))
def test_the_sieve_hides_nothing(
    polls: Sequence[dict[str, float | tuple[float, ...]]], waits: Sequence[int]
) -> None:
    """Marks are the same as when every rule is checked for every series."""
    sieved, complete = Watcher(*RULES), Watcher(*RULES)
    for values, wait_ms in zip(polls, waits, strict=False):
        sieved.poll(values, wait_ms)
        with patch.object(judgement, "_suspects", everything):
            complete.poll(values, wait_ms)
        order = {(mark.rule_id, mark.series): mark for mark in complete.marks}
        assert {(mark.rule_id, mark.series): mark for mark in sieved.marks} == order


@settings(deadline=None)
@given(st.lists(st.tuples(COUNTS, WAITS), max_size=8))
def test_a_rule_holds_when_the_verdict_engine_says_so(
    samples: Sequence[tuple[float, int]],
) -> None:
    """A worker keeps two polls; the engine sees all of them."""
    watcher = Watcher(FAST)
    points: list[Point] = []
    held = False
    for value, wait_ms in samples:
        held_before = held
        held = bool(watcher.poll({IN_OCTETS: value}, wait_ms))
        points.append(Point(watcher.at_ms, value))
        if not math.isfinite(value):
            assert held == held_before
            points.clear()  # the sample before it is not kept, and gives no rate
            continue
        rate = list(counters.rates(points, 64, MINUTE_MS))[-1]
        is_fast = rate.per_second is not None and rate.per_second > 1000.0
        is_unclear = rate.per_second is None or (rate.verdict is Verdict.GAP and not is_fast)
        assert held == (held_before if is_unclear else is_fast)
