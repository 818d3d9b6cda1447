"""A delivery is tried again until it is sent, refused, or too old."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.alerts.telling import delivery
from poller.domain.alerts.telling.delivery import Attempt, Delivery, DeliveryState
from poller.domain.alerts.telling.notice import Notice, NoticeKind
from tests.unit.domain.alerts.telling.told_alerts import HOUR, MINUTE, NOW, SECOND

FAILED = Attempt(False, "away")


def after(attempt: Attempt, **changes: Any) -> delivery.NextStep:
    notice = Notice(key="k", kind=NoticeKind.FIRING, route="ops")
    values = {"id": 1, "key": "k:mail", "route": "ops", "receiver": "mail", "created_ms": NOW}
    made = Delivery(notice=notice, **{**values, **changes})  # type: ignore[arg-type]
    return delivery.next_step(made, attempt, HOUR, 1.0, NOW + MINUTE)


def test_a_sent_delivery_is_over() -> None:
    """Success is final and no event."""
    sent = delivery.NextStep(DeliveryState.SENT, 0, is_event=False)
    assert after(Attempt(True, "200")) == sent


def test_a_failed_delivery_waits_for_longer_each_time() -> None:
    """The wait grows to half a minute, and what the receiver asks for is respected."""
    waits = [after(FAILED, attempts=each).due_ms - NOW - MINUTE for each in range(8)]
    assert waits == sorted(waits)
    assert waits[0] == SECOND
    assert waits[-1] == 30 * SECOND
    asked = after(Attempt(False, "busy", asked_s=100.0))
    assert asked.due_ms == NOW + MINUTE + 110 * SECOND


def test_the_third_failure_is_an_event() -> None:
    """One event for a receiver that fails, not one for each attempt."""
    assert [after(FAILED, attempts=each).is_event for each in range(6)] == [
        *(False, False, True),
        *(False, False, False),
    ]


@pytest.mark.parametrize(
    ("attempt", "created_ms"),
    [(Attempt(False, "550", is_refused=True), NOW), (FAILED, NOW - HOUR)],
    ids=["refused", "too old"],
)
def test_a_delivery_dies_of_a_refusal_or_of_age(attempt: Attempt, created_ms: int) -> None:
    """What is refused, and what was tried for too long, needs a person, and is an event."""
    step = after(attempt, created_ms=created_ms)
    assert (step.state, step.is_event) == (DeliveryState.DEAD, True)
