"""A worker has so many places for batches. A batch that only waits for silent devices lends its place to another:
one dead device in each batch costs nobody else anything.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class Slots:
    """Of one worker process; safe for threads. Without a consumer of its own (a prefork child) it lends nothing."""

    def __init__(self) -> None:
        self._consumer: Any = None
        self._most = 0
        self._lent = 0
        self._lock = threading.Lock()

    def attach(self, consumer: Any) -> None:
        """A consumer (re)connected: it takes as many messages as it has places, and knows of none that are lent."""
        with self._lock:
            self._consumer = consumer
            self._most = getattr(consumer.pool, "spare", 0)
            if self._lent:
                consumer.qos.increment_eventually(self._lent)

    def detach(self) -> None:
        """It lost its connection, and will count anew: until then places are only lent by our own count."""
        with self._lock:
            self._consumer = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """While a batch waits. There are spare threads for so many of them; the others keep their places."""
        lent = self._lend()
        try:
            yield
        finally:
            if lent:
                self._take_back()

    def _lend(self) -> bool:
        with self._lock:
            if self._lent >= self._most:
                return False
            self._lent += 1
            if self._consumer is not None:
                self._consumer.qos.increment_eventually()
                self._consumer.hub.call_soon(_look_again)
            return True

    def _take_back(self) -> None:
        with self._lock:
            self._lent -= 1
            if self._consumer is not None:
                self._consumer.qos.decrement_eventually()


def _look_again() -> None:
    """Nothing to do: but Celery's loop turns once, and finds that it may take another message."""
