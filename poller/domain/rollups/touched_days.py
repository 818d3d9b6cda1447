"""Which days have other roll-ups after polls came: their own days, and those that a rate crosses.

A rate takes two polls. A new poll changes the rate from the poll before it, and the one to the poll
after it; either may lie on another day.
"""

from __future__ import annotations

DAY_MS = 86_400_000
#: Days of a gap that each get their part of the average. Of a longer gap only the ends do.
LONGEST_GAP_DAYS = 40


def day_of(at_ms: int) -> int:
    """Return the start of the UTC day of an instant."""
    return at_ms - at_ms % DAY_MS


def touched_days(
    first_ms: int, last_ms: int, before_ms: int | None = None, after_ms: int | None = None
) -> set[int]:
    """Return the starts of the days that new polls from `first_ms` to `last_ms` change.

    `before_ms` and `after_ms` are the stored polls beside them, if there are any.
    """
    days = set(range(day_of(first_ms), last_ms + 1, DAY_MS))
    if before_ms is not None:
        days |= _crossed(before_ms, first_ms)
    if after_ms is not None:
        days |= _crossed(last_ms, after_ms)
    return days


def _crossed(since_ms: int, until_ms: int) -> set[int]:
    """Return the days that the span between two polls touches."""
    # A poll at 00:00 ends the day before.
    ends = {day_of(since_ms), day_of(max(since_ms, until_ms - 1))}
    if max(ends) - min(ends) > LONGEST_GAP_DAYS * DAY_MS:
        return ends
    return set(range(min(ends), max(ends) + 1, DAY_MS))
