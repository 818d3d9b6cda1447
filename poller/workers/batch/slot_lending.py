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
        self._told = 0  # how many of them the consumer knows of
        self._lock = threading.Lock()

    def attach(self, consumer: Any) -> None:
        """A consumer (re)connected: it takes as many messages as it has places, and knows of none that are lent.

        Called on Celery's hub.
        """
        with self._lock:
            self._consumer, self._told = consumer, 0
            self._most = getattr(consumer.pool, "spare", 0)
        self._tell()

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
            self._tell_soon()
            return True

    def _take_back(self) -> None:
        with self._lock:
            self._lent -= 1
            self._tell_soon()

    def _tell_soon(self) -> None:
        if self._consumer is not None:
            self._consumer.hub.call_soon(self._tell)

    def _tell(self) -> None:
        """On Celery's hub, which changes this number, too, and has no lock for it. Calls may come in any order."""
        with self._lock:
            if self._consumer is None:
                return
            more, self._told = self._lent - self._told, self._lent
            qos = self._consumer.qos
            if more > 0:
                qos.increment_eventually(more)
            elif more < 0:
                qos.decrement_eventually(-more)
            qos.update()  # before the hub waits for its next event
