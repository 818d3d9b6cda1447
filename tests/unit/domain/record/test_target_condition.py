"""The condition of a target is read from the beginning of its stored status."""

from __future__ import annotations

import pytest

from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetState
from poller.domain.record import target_condition
from poller.domain.record.overview import State
from poller.domain.record.target_condition import Condition
from poller.domain.record.target_status import Status

PARKED = Status(
    State.FAILING,
    *(1, 2, 3, 4, 5, 6, "auth_failed", 'it said: "no", [1]'),
    breaker=Breaker(2, 1, 9),
    parked_ms=7,
    reason=Reason.AUTH_FAILED,
    confirmed=True,
)


@pytest.mark.parametrize(
    ("status", "expected"),
    [
        (Status(), Condition()),
        (Status(State.OK, 1, 2, 3, 4), Condition(State.OK)),
        (
            Status(State.DEGRADED, 1, 2, 3, 4, 0, 0, "timeout", "some, not all"),
            Condition(State.DEGRADED, code="timeout"),
        ),
        (PARKED, Condition(State.FAILING, is_open=True, is_parked=True, code="auth_failed")),
    ],
)
def test_a_condition_is_that_of_the_whole_status(status: Status, expected: Condition) -> None:
    """State, breaker, dead letter and code are the same as in the status."""
    assert target_condition.of_status(status.pack()) == expected


def test_texts_of_other_programs_are_targets_that_were_never_polled() -> None:
    """A damaged status has no state and no code."""
    for text in ("", "[", "?[1,2", "{}", "[,,,,,,,,]"):
        assert target_condition.of_status(text) == Condition()


def test_a_disabled_target_has_no_other_state() -> None:
    """Whatever the board still knows of it."""
    condition = target_condition.of_status(PARKED.pack())
    states = target_condition.states(condition, is_enabled=False, is_opened=True)
    assert states == {TargetState.DISABLED}


@pytest.mark.parametrize(
    ("where", "fits"),
    [
        ("state:failing", True),
        ("state:ok", False),
        ("state:open,ok", True),
        ("code:auth_failed", True),
        ("code:timeout state:failing", False),
        ("code:auth_failed,timeout state:parked", True),
    ],
)
def test_a_filter_needs_one_of_its_states_and_one_of_its_codes(where: str, fits: bool) -> None:
    """Values of one key are alternatives; both keys must match."""
    wanted = target_filter.parse(where)
    condition = target_condition.of_status(PARKED.pack())
    assert target_condition.fits(wanted, condition, is_enabled=True, is_opened=False) is fits
