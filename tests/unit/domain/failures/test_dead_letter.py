"""Which failures need a person?"""

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
def test_only_what_a_person_can_mend_is_parked(
    outcome: Outcome, breaker: Breaker, expected: Reason | None
) -> None:
    """A device that is down is not: its breaker waits for it."""
    assert dead_letter.reason(outcome, breaker, NOW, LIMIT) is expected


def test_a_letter_stays_one_until_its_target_answers() -> None:
    """Also when a person closed its breaker or edited its device meanwhile, and the next poll fails otherwise."""
    assert (
        dead_letter.reason(failed("timeout"), CLOSED, NOW, LIMIT, Reason.AUTH_FAILED)
        is Reason.AUTH_FAILED
    )
    refused = Outcome(Result.REFUSED, "options_invalid")
    assert (
        dead_letter.reason(refused, CLOSED, NOW, LIMIT, Reason.AUTH_FAILED) is Reason.NOT_POLLABLE
    )
    assert dead_letter.reason(Outcome(Result.OK), CLOSED, NOW, LIMIT, Reason.AUTH_FAILED) is None
