"""The wait before a destination of results is tried again after an outage."""

from __future__ import annotations

BASE_S = 1.0
CAP_S = 30.0
#: The longest wait that a store can ask for (`Retry-After`): a wrong header must not end a sink.
MOST_ASKED_S = 300.0
#: Beyond this exponent the wait is at its cap; a larger one could overflow.
_MOST_DOUBLINGS = 5
#: The share by which an asked wait is lengthened at most, so that workers come back one by one.
_ASKED_JITTER = 0.1


def wait_s(failures: int, asked_s: float | None, chance: float) -> float:
    """Return the seconds until the next attempt after `failures` in a row, the last just now.

    `asked_s` is the wait that the store asked for, `chance` a random number from 0 to 1.
    """
    if asked_s is not None and asked_s > 0:
        bounded_s = min(max(asked_s, BASE_S), MOST_ASKED_S)
        return bounded_s * (1 + _ASKED_JITTER * chance)

    doublings = min(max(failures - 1, 0), _MOST_DOUBLINGS)
    ceiling_s = min(BASE_S * float(1 << doublings), CAP_S)
    half_s = ceiling_s / 2
    return max(BASE_S, half_s + half_s * chance)
