"""Retries: which failures get one, and the budget for all of them."""

from __future__ import annotations

import pytest
from celery.utils.time import get_exponential_backoff_interval

from poller.domain.failures import retry
from poller.domain.failures.outcome import Outcome, Result
from poller.domain.failures.retry import Budget, Limits
from poller.settings import Settings, policies

TIMEOUT = Outcome(Result.FAILED, "timeout")


@pytest.mark.parametrize(
    ("outcome", "attempt", "spent_ms", "interval_ms", "expected"),
    [
        (TIMEOUT, 0, 2_000, 60_000, True),
        (TIMEOUT, 1, 8_000, 60_000, True),
        (TIMEOUT, 2, 8_000, 60_000, False),  # enough
        (TIMEOUT, 0, 24_001, 60_000, False),  # 24 s + 1 s + 5 s would end after half a minute
        (TIMEOUT, 0, 2_000, 10_000, False),
        (Outcome(Result.OK), 0, 0, 60_000, False),
        (
            Outcome(Result.PARTIAL, "timeout"),
            0,
            0,
            60_000,
            False,
        ),  # most of it is there
        (Outcome(Result.FAILED, "auth_failed"), 0, 0, 60_000, False),
        (Outcome(Result.REFUSED, "timeout"), 0, 0, 60_000, False),
    ],
)
def test_retries_are_few_and_end_within_half_the_interval(
    outcome: Outcome, attempt: int, spent_ms: int, interval_ms: int, expected: bool
) -> None:
    """Only transient failures are retried."""
    assert retry.is_worthwhile(outcome, attempt, spent_ms, 5_000, interval_ms, Limits()) is expected


def test_the_wait_doubles_and_is_capped() -> None:
    """The back-off is exponential for any number of attempts."""
    limits = Limits(tries=99, base_s=1.0, cap_s=8.0)
    assert [limits.longest_wait_ms(n) for n in (0, 1, 2, 3, 4, 98)] == [
        1_000,
        2_000,
        4_000,
        8_000,
        8_000,
        8_000,
    ]


@pytest.mark.parametrize(("failure", "seconds"), [(1, 1), (5, 16), (55, 60), (10_000, 60)])
def test_the_wait_is_right_at_any_failure(failure: int, seconds: int) -> None:
    """Celery draws a wait from 0 to the longest wait of the settings."""
    limits = policies.retry_limits(Settings())
    assert limits.longest_wait_ms(failure - 1) == seconds * 1000
    numbers = (int(limits.base_s), failure - 1, int(limits.cap_s))
    drawn = [get_exponential_backoff_interval(*numbers, True) for _ in range(200)]
    assert 0 <= min(drawn) <= max(drawn) <= get_exponential_backoff_interval(*numbers) == seconds


def test_an_outage_causes_no_storm_of_retries() -> None:
    """Of 100,000 failures in a row, a tenth and the saved tokens are retried."""
    budget, tries = Budget(), 0
    for _ in range(1_000):
        budget = budget.earn(100)
        granted = budget.affordable(100)
        budget, tries = budget.spend(granted), tries + granted
    assert 10_000 <= tries <= 10_100


def test_savings_are_bounded() -> None:
    """A quiet week does not buy a storm."""
    assert Budget(tokens=0).earn(10**9).tokens == 100
    assert Budget(tokens=0.5).affordable(3) == 0
