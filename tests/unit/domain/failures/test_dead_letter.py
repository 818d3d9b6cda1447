"""Dead letters: failures that need an operator."""

from __future__ import annotations

import pytest

from poller.domain.failures import dead_letter
from poller.domain.failures.circuit_breaker import CLOSED, Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Outcome, Result

NOW, LIMIT = 1_800_000_000_000, 86_400_000


def failed(code: str) -> Outcome:
    return Outcome(Result.FAILED, code)


@pytest.mark.parametrize(
    ("outcome", "breaker", "expected"),
    [
        (Outcome(Result.OK), Breaker(9, 1, 1), None),
        (Outcome(Result.PARTIAL, "timeout"), Breaker(9, 1, 1), None),
        (failed("timeout"), CLOSED, None),
        (failed("timeout"), Breaker(3, NOW - LIMIT + 1, NOW), None),
        (failed("timeout"), Breaker(99, NOW - LIMIT, NOW), Reason.OPEN_TOO_LONG),
        (failed("auth_failed"), Breaker(1, NOW, NOW), None),
        (failed("auth_failed"), Breaker(2, NOW, NOW), Reason.AUTH_FAILED),
        (Outcome(Result.REFUSED, "options_invalid"), CLOSED, Reason.NOT_POLLABLE),
    ],
)
def test_only_a_failure_that_needs_an_operator_is_a_dead_letter(
    outcome: Outcome, breaker: Breaker, expected: Reason | None
) -> None:
    """A device that is down is no dead letter: its breaker waits."""
    assert dead_letter.reason(outcome, breaker, NOW, LIMIT) is expected


def test_a_dead_letter_stays_one_until_its_target_responds() -> None:
    """A reset breaker or an edited device does not clear the letter."""
    assert (
        dead_letter.reason(failed("timeout"), CLOSED, NOW, LIMIT, Reason.AUTH_FAILED)
        is Reason.AUTH_FAILED
    )
    refused = Outcome(Result.REFUSED, "options_invalid")
    assert (
        dead_letter.reason(refused, CLOSED, NOW, LIMIT, Reason.AUTH_FAILED) is Reason.NOT_POLLABLE
    )
    assert dead_letter.reason(Outcome(Result.OK), CLOSED, NOW, LIMIT, Reason.AUTH_FAILED) is None
