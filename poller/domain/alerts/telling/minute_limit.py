"""The limit of notices within a minute: the rest becomes one summary."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

MINUTE_MS = 60_000


class Room(NamedTuple):
    """How many of the notices that are due can be told alone, and whether the rest is one summary.

    `free_ms` is when there is room again, if nothing can be told now; else 0.
    """

    alone: int
    has_summary: bool
    free_ms: int = 0


def room(due: int, made_ms: Sequence[int], per_minute: int, now_ms: int) -> Room:
    """Return the room for `due` notices after those that were made at `made_ms`.

    At most `per_minute` notices, summary included, are made within any minute; 0 is no limit.
    Instants far ahead are of a clock that was set back since: they count for nothing.
    """
    if not per_minute:
        return Room(due, has_summary=False)
    recent = sorted(at_ms for at_ms in made_ms if abs(at_ms - now_ms) < MINUTE_MS)
    left = per_minute - len(recent)
    if left <= 0:
        oldest_counted = recent[len(recent) - per_minute]
        return Room(0, has_summary=False, free_ms=oldest_counted + MINUTE_MS)
    if due <= left:
        return Room(due, has_summary=False)
    return Room(left - 1, has_summary=True)
