"""When does a breaker open, for how long, and what closes it?"""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures import circuit_breaker, error_codes
from poller.domain.failures.circuit_breaker import CLOSED, Breaker, BreakerState, Rule, Rules
from poller.settings import Settings, policies

NOW = 1_800_000_000_000
RULES = Rules(by_code={"auth_failed": Rule(1, 900_000, 900_000)}, jitter=0.1)


def after_failures(number: int, code: str = "timeout", chance: float = 0.0) -> Breaker:
    """A target that failed so many times in a row, each time as soon as it was asked."""
    state, now = CLOSED, NOW
    for failures in range(1, number + 1):
        now = max(now, state.probe_ms)
        state = circuit_breaker.record(state, failures, code, now, RULES, chance)
    return state


@pytest.mark.parametrize(
    ("failures", "trips", "wait_s"),
    [(1, 0, None), (4, 0, None), (5, 1, 30), (6, 2, 60), (7, 3, 120), (9, 5, 480), (10, 6, 900), (55, 51, 900),
     (10_000, 9_996, 900)],
)  # fmt: skip
def test_the_wait_doubles_up_to_its_cap(failures: int, trips: int, wait_s: int | None) -> None:
    """From the fifth failure on, and right at the 55th and the ten thousandth as well."""
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


def test_nobody_asks_before_the_probe_and_one_may_then() -> None:
    """Closed, open, half-open."""
    state = after_failures(5)
    assert circuit_breaker.state_at(CLOSED, NOW) is BreakerState.CLOSED
    assert circuit_breaker.state_at(state, NOW + 29_999) is BreakerState.OPEN
    assert circuit_breaker.state_at(state, NOW + 30_000) is BreakerState.HALF_OPEN


def test_a_good_answer_closes_it() -> None:
    """However long it was open."""
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
    """And what is not a breaker is refused."""
    state = after_failures(7)
    assert circuit_breaker.unpack(state.pack()) == state
    with pytest.raises((TypeError, ValueError)):
        circuit_breaker.unpack([1, "x"])


def test_what_took_its_worker_along_is_left_alone_at_once() -> None:
    """For as long as any other at first: the worker's other targets are polled before it is asked again."""
    rules = policies.breaker_rules(Settings())
    opened = circuit_breaker.record(CLOSED, 1, error_codes.WORKER_DIED, NOW, rules, 0.0)
    assert (opened.trips, opened.probe_ms - NOW) == (1, 30_000)


@pytest.mark.parametrize("code", [error_codes.DOWN, error_codes.UNWELL])
def test_what_a_probe_finds_is_news_after_two_in_a_row_and_is_never_waited_with(code: str) -> None:
    """However long it lasts: it is looked at again at the next slot."""
    rules = policies.breaker_rules(Settings())
    assert circuit_breaker.record(CLOSED, 1, code, NOW, rules, 0.5) == CLOSED
    for failures in (2, 3, 1000):
        opened = circuit_breaker.record(
            Breaker(failures - 2, NOW, NOW), failures, code, NOW, rules, 0.5
        )
        assert (opened.trips, opened.probe_ms) == (failures - 1, NOW)
        assert circuit_breaker.state_at(opened, NOW) is BreakerState.HALF_OPEN


def test_an_operator_who_wants_breakers_to_open_at_once_gets_that_of_findings_too() -> None:
    rules = policies.breaker_rules(Settings(breaker_failures=1))
    assert circuit_breaker.record(CLOSED, 1, error_codes.DOWN, NOW, rules, 0.5).trips == 1
