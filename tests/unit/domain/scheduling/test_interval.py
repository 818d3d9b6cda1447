"""The interval of an adaptive target: its numbers, its bounds, and the effect of errors."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.scheduling import interval
from poller.domain.scheduling.interval import Adaptive, Inputs

#: Min 5 s, base 10 s, max 60 s.
GOLDEN = Adaptive(5_000, 10_000, 60_000)
NORMAL = Adaptive()

policies = st.builds(
    lambda low, more, most, **rest: Adaptive(low, low + more, low + more + most, **rest),
    st.integers(1_000, 10**6),
    st.integers(0, 10**6),
    st.integers(0, 10**8),
    alpha=st.floats(0.01, 1),
    jitter=st.floats(0, 0.5),
    stretch=st.floats(0, 10),
    penalty=st.floats(0, 10),
)
scores = st.floats(-1, 2)
counts = st.integers(0, 10**6)
chances = st.floats(0, 1, exclude_max=True)
inputs = st.builds(
    Inputs,
    scores,
    counts,
    counts,
    st.none() | st.floats(0, 10**10),
    chances,
    st.sampled_from(["", "steady"]),
)


def chosen_s(policy: Adaptive, **fields: float) -> float:
    return interval.adapt(policy, Inputs(**fields)).chosen_ms / 1000  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("score", "expected"), [(0, 40), (0.25, 31.75), (0.5, 23.5), (0.75, 15.25), (1, 7)]
)
def test_the_staler_the_sooner(score: float, expected: float) -> None:
    """The score maps the longest interval to the shortest, smoothed from the base."""
    assert chosen_s(GOLDEN, score=score) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("errors", "expected"), [(0, 23.5), (1, 16.188), (2, 12.864), (5, 8.875), (10, 7)]
)
def test_errors_shorten_it_down_to_the_shortest(errors: int, expected: float) -> None:
    """To confirm them quickly."""
    assert chosen_s(GOLDEN, score=0.5, errors=errors) == pytest.approx(expected, abs=0.001)


@pytest.mark.parametrize(
    ("depth", "expected"),
    [(0, 23.5), (1, 23.5), (2, 25.45), (3, 27.4), (5, 31.3), (10, 40), (50, 40)],
)
def test_waiting_batches_stretch_it_up_to_the_longest(depth: int, expected: float) -> None:
    """One is no backlog."""
    assert chosen_s(GOLDEN, score=0.5, depth=depth) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"score": 0.9, "errors": 3, "depth": 10}, 9.7),
        ({"score": 0.1}, 36.7),
        ({"score": 0.5, "previous_ms": 40_000}, 35.5),
    ],
)
def test_everything_together(fields: dict[str, float], expected: float) -> None:
    """The order is score, errors, depth, smoothing."""
    assert chosen_s(GOLDEN, **fields) == pytest.approx(expected)


def test_another_base_is_another_start() -> None:
    """Without a past, the base is smoothed from."""
    assert chosen_s(replace(GOLDEN, base_ms=20_000), score=0.5) == pytest.approx(27.5)


def test_it_approaches_step_by_step() -> None:
    """Each decision starts from what the last one remembered."""
    found, previous = [], None
    for score in (1, 0, 0):
        decision = interval.adapt(GOLDEN, Inputs(score, previous_ms=previous))
        found.append(decision.chosen_ms / 1000)
        previous = decision.smoothed_ms
    assert found == pytest.approx([7, 38.8, 51.52])


@pytest.mark.parametrize("max_ms", [4_999, 0, -1])
def test_a_longest_below_the_shortest_counts_as_the_shortest(max_ms: int) -> None:
    """A draft refuses such bounds; a row edited by hand must not stop the polling."""
    decision = interval.adapt(replace(GOLDEN, max_ms=max_ms), Inputs(0.3, depth=40, chance=0.9))
    assert decision.chosen_ms == 5_000


def test_jitter_strays_by_its_share_and_is_not_remembered() -> None:
    """Over a seeded thousand: both edges are approached, never passed."""
    generator, policy = random.Random(7), replace(NORMAL, base_ms=100_000)
    found = [
        interval.adapt(policy, Inputs(policy.neutral, chance=generator.random()))
        for _ in range(1_000)
    ]
    chosen = [decision.chosen_ms for decision in found]
    assert {decision.smoothed_ms for decision in found} == {100_000}
    assert 95_000 <= min(chosen) < 95_200
    assert 104_800 < max(chosen) <= 105_000


@given(policies, inputs)
def test_it_is_never_out_of_bounds(policy: Adaptive, given_: Inputs) -> None:
    """Whatever comes in."""
    decision = interval.adapt(policy, given_)
    for value in (decision.target_ms, decision.smoothed_ms, decision.chosen_ms):
        assert policy.min_ms <= value <= policy.max_ms


@given(policies, inputs, scores)
def test_a_staler_target_is_never_polled_later(
    policy: Adaptive, given_: Inputs, other: float
) -> None:
    """All else equal."""
    fresher, staler = sorted([given_.score, other])
    late = interval.adapt(policy, replace(given_, score=fresher)).chosen_ms
    assert interval.adapt(policy, replace(given_, score=staler)).chosen_ms <= late


@given(policies, inputs, counts)
def test_more_waiting_batches_never_shorten_it(policy: Adaptive, given_: Inputs, more: int) -> None:
    """Back-pressure only ever slows down."""
    stretched = interval.adapt(policy, replace(given_, depth=given_.depth + more)).chosen_ms
    assert interval.adapt(policy, given_).chosen_ms <= stretched


@given(policies, inputs, counts)
def test_more_errors_never_lengthen_it(policy: Adaptive, given_: Inputs, more: int) -> None:
    """An error is confirmed quickly; to leave a dead device alone is the breaker's part."""
    hurried = interval.adapt(policy, replace(given_, errors=given_.errors + more)).chosen_ms
    assert hurried <= interval.adapt(policy, given_).chosen_ms


def test_a_failing_device_by_the_numbers() -> None:
    """Confirmed within half a minute, and soon at its base again once it answers."""
    found, previous = [], None
    for errors in (0, 1, 2, 3, 4, 0, 0, 0):
        decision = interval.adapt(NORMAL, Inputs(NORMAL.neutral, errors, previous_ms=previous))
        found.append(decision.chosen_ms)
        previous = decision.smoothed_ms
    assert found == [10_000, 7_750, 6_100, 5_440, 5_176, 8_070, 9_228, 9_691]


instants = st.integers(1_000_000_000_000, 3_000_000_000_000)


@given(instants, st.integers(1, 10**9), st.integers(-(10**9), 10**12))
def test_the_next_poll_is_ahead_on_the_grid_of_the_plan_and_no_further_than_one_interval(
    plan_ms: int, chosen_ms: int, later_ms: int
) -> None:
    """The length of the poll and a clock that was set back make no difference."""
    finished_ms = plan_ms + later_ms
    next_ms = interval.next_ms(plan_ms, chosen_ms, finished_ms)
    assert finished_ms < next_ms <= finished_ms + chosen_ms
    assert (next_ms - plan_ms) % chosen_ms == 0


def test_repeated_decisions_do_not_move_a_pending_slot() -> None:
    """Five decisions, ten seconds apart, keep a slot at the end of the minute."""
    assert {interval.next_ms(0, 60_000, second * 1_000) for second in (0, 10, 20, 30, 40, 59)} == {
        60_000
    }


@given(policies, inputs)
def test_a_decision_survives_packing(policy: Adaptive, given_: Inputs) -> None:
    """Up to the digits of its score that matter."""
    decision = interval.adapt(policy, given_)
    again = interval.unpack(decision.pack())
    assert again == replace(decision, score=again.score)
    assert again.score == pytest.approx(decision.score, abs=1e-6)


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, "every 10 s: base 10 s"),
        ({"errors": 1}, "every 7.8 s: base 10 s, 1 error shortens to 6.2 s, smoothed"),
        (
            {"errors": 2, "previous_ms": 7_750},
            "every 6.1 s: base 10 s, 2 errors shorten to 5 s, smoothed",
        ),
        ({"depth": 3}, "every 11.2 s: base 10 s, 3 waiting batches stretch to 12 s, smoothed"),
        ({"chance": 0.1}, "every 9.6 s: base 10 s, jitter"),
        (
            {"score": 0.5, "source": "change", "previous_ms": 152_500},
            "every 2 m 32 s: base 10 s, staleness 0.50 (change) asks for 2 m 32 s",
        ),
    ],
)
def test_a_decision_is_explained_in_one_sentence(
    fields: dict[str, float | str], expected: str
) -> None:
    """The sentence names the effective inputs in their order."""
    decision = interval.adapt(NORMAL, Inputs(**{"score": NORMAL.neutral, **fields}))  # type: ignore[arg-type]
    assert interval.explain(NORMAL, interval.unpack(decision.pack())) == expected
