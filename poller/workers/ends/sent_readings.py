"""The newest readings that this process sent for each target, and when each is looked at again.

An entry refers to objects that the cache of targets holds anyway.
"""

from __future__ import annotations

import threading
from collections.abc import Iterable, Mapping

from poller.domain.metrics.series_ends import LastSent

#: A target is overdue after this many of its intervals, but never later than the limit.
OVERDUE_INTERVALS = 1.5
OVERDUE_LIMIT_S = 120.0


class SentReadings:
    """One per worker process, safe for threads."""

    def __init__(self) -> None:
        self._by_target: dict[int, LastSent] = {}
        self._check_mono: dict[int, float] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._by_target)

    def get(self, target_id: int) -> LastSent | None:
        return self._by_target.get(target_id)

    def update(self, sent: Iterable[LastSent], ended: Iterable[int], now_mono: float) -> None:
        """Store the readings of a round, and forget targets whose series have ended."""
        with self._lock:
            for last in sent:
                target = last.target
                self._by_target[target.id] = last
                self._check_mono[target.id] = now_mono + _overdue_s(last)
            for target_id in ended:
                self._remove(target_id)

    def overdue(self, now_mono: float) -> dict[int, LastSent]:
        """Return the targets that should have been polled by now, each once per overdue time."""
        with self._lock:
            ids = [each for each, check_mono in self._check_mono.items() if check_mono <= now_mono]
            found = {target_id: self._by_target[target_id] for target_id in ids}
            for target_id, last in found.items():
                self._check_mono[target_id] = now_mono + _overdue_s(last)
        return found

    def forget(self, entries: Mapping[int, LastSent]) -> set[int]:
        """Forget entries, unless the target was polled here meanwhile. Returns the forgotten."""
        with self._lock:
            ids = {each for each, last in entries.items() if self._by_target.get(each) is last}
            for target_id in ids:
                self._remove(target_id)
        return ids

    def _remove(self, target_id: int) -> None:
        self._by_target.pop(target_id, None)
        self._check_mono.pop(target_id, None)


def _overdue_s(last: LastSent) -> float:
    return min(OVERDUE_INTERVALS * last.target.interval_ms / 1000, OVERDUE_LIMIT_S)
