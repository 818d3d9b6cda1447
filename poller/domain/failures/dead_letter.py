"""Does a target need a person? Then it is parked: asked again only slowly, listed with its reason, never forgotten."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.outcome import Outcome, Result


class Reason(enum.StrEnum):
    AUTH_FAILED = (
        "auth_failed"  # the device refuses our credential, and refused it again at the probe
    )
    NOT_POLLABLE = (
        "not_pollable"  # options, credential or collector cannot be used: nothing was sent
    )
    COLLECTOR_QUARANTINED = (
        "collector_quarantined"  # its collector crashed too often: nothing was sent
    )
    OPEN_TOO_LONG = (
        "open_too_long"  # it has not answered for so long that it may not be there any more
    )


@dataclass(frozen=True, slots=True)
class Letter:
    """What is kept of a dead letter. Without a reason it says that the target is none any more, as of `last_ms`."""

    target_id: int
    last_ms: int  # last failure
    reason: Reason | None = None
    error_code: str = ""
    message: str = ""
    first_ms: int = 0  # first failure of the row of failures that led here
    parked_ms: int = 0
    next_ms: int = 0  # next slow retry
    attempts: int = 0  # that failed, in a row


#: A credential that was refused once may have met a server that was down; asked twice, it is wrong.
REFUSALS = 2


def reason(
    outcome: Outcome,
    breaker: Breaker,
    now_ms: int,
    open_limit_ms: int,
    before: Reason | None = None,
) -> Reason | None:
    """Why a target must be parked after this outcome, which left its breaker like that; None if it need not be.

    One that is parked already, for the reason `before`, stays so until it answers, whatever people did meanwhile.
    """
    if outcome.good:
        return None
    if outcome.result is Result.REFUSED:
        if outcome.error_code == Reason.COLLECTOR_QUARANTINED:
            return Reason.COLLECTOR_QUARANTINED
        return Reason.NOT_POLLABLE
    if outcome.error_code == Reason.AUTH_FAILED and breaker.trips >= REFUSALS:
        return Reason.AUTH_FAILED
    if breaker.trips and now_ms - breaker.since_ms >= open_limit_ms:
        return Reason.OPEN_TOO_LONG
    return before
