"""The statistics of one target on one UTC day."""

from __future__ import annotations

from typing import NamedTuple

DAY_MS = 86_400_000


class TargetDay(NamedTuple):
    """Counts of runs; durations and lateness of polls, in ms.

    A poll is a run that started and has an outcome. `unpolled` runs were refused, lost or given up.
    """

    day_ms: int  # 00:00 UTC
    target_id: int
    polls: int = 0
    ok: int = 0
    partial: int = 0
    failed: int = 0
    unpolled: int = 0
    mean_ms: int = 0
    p50_ms: int = 0
    p95_ms: int = 0
    max_ms: int = 0
    late_p95_ms: int = 0

    @property
    def availability(self) -> float | None:
        """The share of polls that the target answered, in full or in part; None without polls."""
        if not self.polls:
            return None
        return (self.ok + self.partial) / self.polls


def ended_days(at_ms: int, count: int) -> list[int]:
    """The starts of the last days that ended at this instant or before, oldest first."""
    today_ms = at_ms - at_ms % DAY_MS
    return [today_ms - back * DAY_MS for back in range(count, 0, -1)]
