"""When a failure is confirmed, and when the target is polled to confirm it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.failures import confirmation, error_codes
from poller.domain.failures.circuit_breaker import CLOSED, Breaker

NOW = 1_800_000_000_000


@pytest.mark.parametrize(
    ("failures", "code", "breaker", "is_parked", "expected"),
    [
        (0, "", CLOSED, False, False),
        (1, "timeout", CLOSED, False, False),
        (2, "timeout", CLOSED, False, False),
        (3, "timeout", Breaker(1, NOW, NOW), False, True),
        (1, "auth_failed", Breaker(1, NOW, NOW), False, True),
        (1, "credential_unusable", CLOSED, True, True),
        (1, "down", CLOSED, False, False),
        (2, "down", CLOSED, False, True),
        (2, "unwell", CLOSED, False, True),
        (2, "host_busy", CLOSED, False, False),
        (3, "host_busy", CLOSED, False, True),
    ],
)
def test_a_failure_that_lasts_is_confirmed(
    failures: int, code: str, breaker: Breaker, is_parked: bool, expected: bool
) -> None:
    """By an open breaker, a dead letter, a second finding, or as many failures as open one."""
    assert confirmation.is_confirmed(failures, code, breaker, is_parked, 3) is expected


def test_only_faults_that_another_poll_can_confirm_are_polled_sooner() -> None:
    """A refused login is not repeated, and a limit of the worker is not made worse."""
    soon = {code for code in error_codes.TABLE if confirmation.is_soon_worthwhile(code)}
    assert soon == {
        *("timeout", "unreachable", "protocol_error", "device_error"),
        *("down", "unwell", "rejected"),
    }


@given(st.integers(1, 10**6), st.integers(1_000, 10**8), st.integers(1_000, 10**8))
def test_the_next_poll_is_never_later_than_the_next_slot(
    target_id: int, interval_ms: int, confirm_ms: int
) -> None:
    """It is at most one interval away, and spread over the shorter interval."""
    next_ms = confirmation.next_ms(target_id, interval_ms, confirm_ms, NOW)
    assert NOW < next_ms <= NOW + min(interval_ms, confirm_ms)
