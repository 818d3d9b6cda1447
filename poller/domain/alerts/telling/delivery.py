"""A delivery: one notice for one receiver, as the ledger has it, and what follows an attempt."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.alerts.telling.notice import Notice
from poller.domain.failures import delivery_backoff

#: After so many attempts a delivery lets later ones of its receiver pass.
PATIENT_ATTEMPTS = 5
#: A failure is an event from this attempt on, and when the delivery is dead.
EVENT_ATTEMPT = 3


class DeliveryState(enum.StrEnum):
    """The state of a delivery."""

    WAITING = "waiting"
    SENT = "sent"
    DEAD = "dead"  # refused, or tried for too long: a person can retry it


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One row of the ledger of deliveries. `answer` is the receiver's, or the last error."""

    id: int
    key: str
    route: str
    receiver: str
    notice: Notice
    state: DeliveryState = DeliveryState.WAITING
    attempts: int = 0
    due_ms: int = 0
    created_ms: int = 0
    ended_ms: int = 0
    answer: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """How an attempt ended. A refusal is final: the same notice will be refused again."""

    is_sent: bool
    answer: str
    is_refused: bool = False
    asked_s: float | None = None  # the wait that the receiver asks for


@dataclass(frozen=True, slots=True)
class NextStep:
    """The ledger's columns after an attempt."""

    state: DeliveryState
    due_ms: int
    is_event: bool


def next_step(
    delivery: Delivery, attempt: Attempt, give_up_ms: int, chance: float, now_ms: int
) -> NextStep:
    """Return the state of a delivery after an attempt; `attempts` counts those before it."""
    if attempt.is_sent:
        return NextStep(DeliveryState.SENT, 0, is_event=False)
    attempts = delivery.attempts + 1
    wait_ms = round(1000 * delivery_backoff.wait_s(attempts, attempt.asked_s, chance))
    is_too_late = now_ms + wait_ms > delivery.created_ms + give_up_ms
    if attempt.is_refused or is_too_late:
        return NextStep(DeliveryState.DEAD, 0, is_event=True)
    is_event = attempts == EVENT_ATTEMPT
    return NextStep(DeliveryState.WAITING, now_ms + wait_ms, is_event)


def delivery_key(notice_key: str, receiver: str) -> str:
    """The key by which a receiver recognizes a repeat: the same in every attempt."""
    return f"{notice_key}:{receiver}"


def notice_key(key: str) -> str:
    """The key of the notice of a delivery's key."""
    return key.partition(":")[0]
