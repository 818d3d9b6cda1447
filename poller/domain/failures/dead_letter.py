"""Dead letters: targets that need an operator.

This module only decides; the board parks the target, and SQL stores the letter. A parked target is
polled every `deadletter_retry_s` and stays listed until it responds.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.failures import error_codes
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.error_codes import DeadLetterRule
from poller.domain.failures.outcome import Outcome, Result

HOUR_MS = 3_600_000
#: One refused login may be due to an authentication server that was down; the second one is final.
REFUSALS = 2


class Reason(enum.StrEnum):
    #: The device refused the credential, and refused it again at the probe.
    AUTH_FAILED = "auth_failed"
    #: Options, credential or collector cannot be used; nothing was sent.
    NOT_POLLABLE = "not_pollable"
    #: The device has nothing of what the target reads.
    UNSUPPORTED = "unsupported"
    #: A bug in the collector.
    COLLECTOR_CRASHED = "collector_crashed"
    #: The collector crashed too often; nothing was sent.
    COLLECTOR_QUARANTINED = "collector_quarantined"
    #: The responses have not followed the protocol for an hour.
    PROTOCOL_ERROR = "protocol_error"
    #: The target has not responded for so long that it may no longer exist.
    OPEN_TOO_LONG = "open_too_long"


class GroupBy(enum.StrEnum):
    """What the letters of a group have in common."""

    CAUSE = "cause"  # reason, error code and collector
    TEXT = "text"  # the same, and the whole text of the error
    COLLECTOR = "collector"
    SITE = "site"
    DEVICE = "device"


@dataclass(frozen=True, slots=True)
class Letter:
    """One dead letter.

    A letter without a reason says that the target is no dead letter since `last_ms`.
    """

    target_id: int
    last_ms: int  # last failure
    reason: Reason | None = None
    error_code: str = ""
    message: str = ""
    first_ms: int = 0  # first of the failures in a row
    parked_ms: int = 0
    next_ms: int = 0  # next slow retry
    attempts: int = 0  # failures in a row


def reason(
    outcome: Outcome,
    breaker: Breaker,
    now_ms: int,
    open_limit_ms: int,
    before: Reason | None = None,
) -> Reason | None:
    """Why the target is a dead letter after this outcome, or None.

    `breaker` is the breaker after the outcome, `before` the reason why the target already is a dead
    letter. A dead letter stays one until the target responds, also when an operator resets the
    breaker or edits the device.
    """
    if outcome.good:
        return None
    if outcome.result is Result.REFUSED:
        return _reason_of_refusal(outcome.error_code)

    rule = error_codes.TABLE[outcome.error_code].dead_letter
    if not breaker.trips or rule in (DeadLetterRule.NEVER, DeadLetterRule.AT_ONCE_IF_REFUSED):
        return before
    open_ms = now_ms - breaker.since_ms
    if _is_early(rule, breaker, open_ms):
        return Reason(outcome.error_code)
    if open_ms >= open_limit_ms:
        return Reason.OPEN_TOO_LONG
    return before


def _is_early(rule: DeadLetterRule, breaker: Breaker, open_ms: int) -> bool:
    """Whether a rule makes the target a dead letter before `deadletter_after_s`."""
    match rule:
        case DeadLetterRule.AT_OPENING:
            return True
        case DeadLetterRule.SECOND_REFUSAL:
            return breaker.trips >= REFUSALS
        case DeadLetterRule.OPEN_FOR_AN_HOUR:
            return open_ms >= HOUR_MS
    return False


def _reason_of_refusal(code: str) -> Reason:
    if code == error_codes.COLLECTOR_QUARANTINED:
        return Reason.COLLECTOR_QUARANTINED
    return Reason.NOT_POLLABLE
