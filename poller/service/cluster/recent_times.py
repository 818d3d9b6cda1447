"""The slot times and waits of queues for all viewers of a process: one reading in ten seconds.

The board keeps them in slices of ten seconds, and only whole slices count. A fleet with many queues
has thousands of numbers in them, which need not be read for every viewer and second.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING

from poller.domain.metrics.queue_times import QueueTimes
from poller.state.cluster import queue_loads
from poller.state.keys import SLICE_MS

if TYPE_CHECKING:
    from poller.bootstrap import Services


class RecentTimes:
    """The newest reading, safe for threads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._slice = -1
        self._latest: Mapping[str, QueueTimes] = {}

    def at(self, now_ms: int) -> Mapping[str, QueueTimes]:
        """Return the times by queue up to the last whole slice. Raises StoreError."""
        with self._lock:
            newest = now_ms // SLICE_MS
            if newest != self._slice:
                services = self._services
                self._latest = queue_loads.times(services.redis, services.keys, now_ms)
                self._slice = newest
            return self._latest
