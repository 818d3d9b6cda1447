"""When a failure is confirmed: one failed poll may be an accident, several in a row are news.

Until then the target is polled more often than usual, within a budget of the worker.
"""

from __future__ import annotations

from poller.domain.failures import error_codes
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.scheduling import slots

#: Findings in a row that confirm a failure. A probe sends several requests by itself.
FINDINGS = 2


def is_confirmed(failures: int, code: str, breaker: Breaker, is_parked: bool, usual: int) -> bool:
    """Whether a failure lasts: its breaker is open, it is a dead letter, or it was repeated.

    `usual` is the number of failures that open a breaker; it also confirms failures that open none.
    """
    if not failures:
        return False
    if breaker.trips or is_parked or failures >= usual:
        return True
    return code in error_codes.FINDINGS and failures >= FINDINGS


def is_soon_worthwhile(code: str) -> bool:
    """Whether another poll can confirm the failure: something was sent, and the fault may pass."""
    return code in error_codes.RETRIED or code in error_codes.FINDINGS


def next_ms(target_id: int, interval_ms: int, confirm_ms: int, after_ms: int) -> int:
    """Return the next instant on the grid of the shorter interval, so that a fleet spreads out."""
    return slots.next_slot_ms(target_id, min(interval_ms, confirm_ms), after_ms)
