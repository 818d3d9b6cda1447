"""Flap damping: what comes and goes is told a few times, then once as flapping.

The third firing within an hour keeps the alert open until its condition was gone for a quarter of
an hour. So a series that flaps all day makes three notices of firing and three of an end.
"""

from __future__ import annotations

from collections.abc import Sequence

#: Firings within the window, the present one among them, from which on an alert is damped.
FIRINGS = 3
WINDOW_MS = 3_600_000
#: The time without the condition that ends a damped alert.
QUIET_MS = 900_000


def firings(before_ms: Sequence[int], now_ms: int) -> int:
    """Return the number of firings within the window if the alert fires now. `before_ms` are the
    earlier firings of the same identity.
    """
    return 1 + sum(now_ms - WINDOW_MS < fired_ms <= now_ms for fired_ms in before_ms)


def damped_until_ms(flaps: int, now_ms: int) -> int:
    """Return until when an alert that holds now stays open at least; 0 if it is not damped."""
    return now_ms + QUIET_MS if flaps >= FIRINGS else 0
