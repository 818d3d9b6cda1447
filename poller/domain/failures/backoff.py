"""How long to wait after the n-th failure in a row. The exponent is clamped before multiplying: no overflow."""

from __future__ import annotations

_MAX_EXPONENT = 60


def exponential(failures: int, base_s: float, cap_s: float) -> float:
    """base, 2*base, 4*base ... up to cap; never 0, for any number of failures."""
    return min(cap_s, base_s * 2.0 ** min(max(0, failures - 1), _MAX_EXPONENT))
