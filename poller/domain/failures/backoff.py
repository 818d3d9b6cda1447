"""Exponential back-off: the wait after the n-th failure in a row.

The base and the cap of an error code are those of its breaker rule: `error_codes.TABLE` names the
rule, `circuit_breaker.rules` has its numbers.
"""

from __future__ import annotations

#: The exponent is clamped before the multiplication, so that no number of failures overflows.
_MAX_EXPONENT = 60


def exponential(failures: int, base: float, cap: float) -> float:
    """Return base, 2 * base, 4 * base ... up to the cap; never 0, for any number of failures.

    The result has the unit of the base and the cap.
    """
    doublings = max(0, failures - 1)
    exponent = min(doublings, _MAX_EXPONENT)
    return min(cap, base * 2.0**exponent)
