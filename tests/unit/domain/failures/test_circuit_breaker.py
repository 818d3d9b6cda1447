"""The circuit breaker: when it opens, for how long, and what closes it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures import circuit_breaker, error_codes
from poller.domain.failures.circuit_breaker import CLOSED, Breaker, BreakerState, Rule, Rules
from poller.settings import Settings, policies

NOW = 1_800_000_000_000
RULES = Rules(
    usual=Rule(after=5),
    by_code={"auth_failed": Rule(1, 900_000, 900_000, 900_000)},
    jitter=0.1,
)


def after_failures(number: int, code: str = "timeout", chance: float = 0.0) -> Breaker:
    """The breaker after `number` failures in a row, each at the earliest probe."""
    state, now = CLOSED, NOW
    for failures in range(1, number + 1):
        now = max(now, state.probe_ms)
        state = circuit_breaker.record(state, failures, code, now, RULES, chance)
    return state


@pytest.mark.parametrize(
    ("failures", "trips", "wait_s"),
    [
        (1, 0, None),
        (4, 0, None),
        (5, 1, 30),
        (6, 2, 60),
        (7, 3, 120),
        (9, 5, 480),
        (10, 6, 900),
        (55, 51, 900),
        (10_000, 9_996, 900),
    ],
)
def test_the_wait_doubles_up_to_its_cap(failures: int, trips: int, wait_s: int | None) -> None:
    """The first wait follows the fifth failure; the 55th and the 10,000th are capped."""
    state = after_failures(failures)
    assert state.trips == trips
    if wait_s is None:
        assert state == CLOSED
    else:
        before = after_failures(failures - 1)
        assert state.probe_ms - max(NOW, before.probe_ms) == wait_s * 1000


@pytest.mark.parametrize("failures", [5, 55, 10_000])
def test_the_wait_is_shortened_at_random_by_a_tenth_at_most(failures: int) -> None:
    """A thousand breakers that opened together are not probed together."""
    longest = 30_000 if failures == 5 else 900_000
    opened = Breaker(failures - 5, NOW, NOW) if failures > 5 else CLOSED
    waits = [
        circuit_breaker.record(opened, failures, "timeout", NOW, RULES, n / 1000).probe_ms - NOW
        for n in range(1000)
    ]
    assert (max(waits), len(set(waits))) == (longest, 1000)
    assert 0.9 * longest <= min(waits) < 0.901 * longest


def test_a_refused_credential_opens_at_once_and_for_long() -> None:
    """Asking again and again locks accounts."""
    state = after_failures(1, "auth_failed")
    assert (state.trips, state.probe_ms) == (1, NOW + 900_000)


def test_a_breaker_is_open_until_its_probe_and_half_open_then() -> None:
    """A breaker is closed, then open until its probe, then half-open."""
    state = after_failures(5)
    assert circuit_breaker.state_at(CLOSED, NOW) is BreakerState.CLOSED
    assert circuit_breaker.state_at(state, NOW + 29_999) is BreakerState.OPEN
    assert circuit_breaker.state_at(state, NOW + 30_000) is BreakerState.HALF_OPEN


def test_a_good_poll_closes_it() -> None:
    """The number of failed probes makes no difference."""
    assert circuit_breaker.record(after_failures(300), 0, "", NOW, RULES, 0.5) == CLOSED


def test_it_remembers_since_when_it_is_open() -> None:
    """Failed probes do not reset that."""
    assert after_failures(5).since_ms == after_failures(9).since_ms == NOW


@given(
    st.integers(1, 2**63),
    st.floats(0, 1, exclude_max=True),
    st.sampled_from(["timeout", "auth_failed"]),
)
def test_the_wait_is_never_zero_and_never_beyond_the_cap(
    trips: int, chance: float, code: str
) -> None:
    """The ancestor's delay became 0 at the 55th failure."""
    state = circuit_breaker.record(Breaker(trips, NOW, NOW), 5 + trips, code, NOW, RULES, chance)
    assert 0.9 * 30_000 <= state.probe_ms - NOW <= 900_000


def test_packed_and_unpacked_it_is_the_same() -> None:
    """Values that are not those of a breaker raise an error."""
    state = after_failures(7)
    assert circuit_breaker.unpack(state.pack()) == state
    with pytest.raises((TypeError, ValueError)):
        circuit_breaker.unpack([1, "x"])


def test_a_target_whose_worker_died_has_an_open_breaker_at_once() -> None:
    """The first wait is the usual one, so the worker's other targets are polled first."""
    rules = policies.breaker_rules(Settings())
    opened = circuit_breaker.record(CLOSED, 1, error_codes.WORKER_DIED, NOW, rules, 0.0)
    assert (opened.trips, opened.probe_ms - NOW) == (1, 30_000)


@pytest.mark.parametrize("code", [error_codes.DOWN, error_codes.UNWELL])
def test_a_finding_closes_the_breaker_however_long_it_lasts(code: str) -> None:
    """A target whose result is the finding is polled at every slot."""
    rules = policies.breaker_rules(Settings(breaker_failures=1))
    for failures in (1, 2, 3, 1000):
        for before in (CLOSED, Breaker(failures, NOW, NOW)):
            assert circuit_breaker.record(before, failures, code, NOW, rules, 0.5) == CLOSED


@pytest.mark.parametrize(
    ("well_before_ms", "longest_ms"), [(86_399_999, 300_000), (86_400_000, 900_000)]
)
def test_the_longest_wait_depends_on_the_last_good_poll(
    well_before_ms: int, longest_ms: int
) -> None:
    """A device that was well within the last day is probed every five minutes."""
    rules = policies.breaker_rules(Settings())
    ok_ms = NOW - well_before_ms
    opened = circuit_breaker.record(Breaker(50, NOW, NOW), 60, "timeout", NOW, rules, 0.0, ok_ms)
    assert opened.probe_ms - NOW == longest_ms
