"""A batch that only waits for silent devices lends its share of the worker's concurrency to another
batch, and so does a job.

Lending raises the consumer's prefetch count, so one dead device in each batch delays no other
batch, and a job that runs for an hour delays no poll.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


class CapacityLending:
    """One per worker process, safe for threads. Without a consumer (a prefork child) it lends
    nothing.
    """

    def __init__(self) -> None:
        self._consumer: Any = None
        self._maximum = 0
        self._lent = 0
        self._jobs = 0  # places that jobs lend
        self._applied = 0  # the lent places that the consumer's prefetch count contains
        self._lock = threading.Lock()

    @property
    def lent(self) -> int:
        """Batches that lend their place now."""
        return self._lent

    def attach(self, consumer: Any) -> None:
        """Take over a consumer that (re)connected with its original prefetch count. Runs on
        Celery's hub.
        """
        with self._lock:
            self._consumer = consumer
            self._applied = 0
            self._maximum = getattr(consumer.pool, "spare", 0)
        self._apply()

    def detach(self) -> None:
        """Forget a consumer that lost its connection. The count of lent places goes on
        without it.
        """
        with self._lock:
            self._consumer = None

    @contextmanager
    def lend(self) -> Iterator[bool]:
        """Lend one place while the context lasts, if the pool has a spare thread for it. Gives
        whether it is lent.
        """
        is_lent = self._take()
        try:
            yield is_lent
        finally:
            if is_lent:
                self._give_back()

    @contextmanager
    def lend_place(self) -> Iterator[None]:
        """Lend the place of a job while the context lasts. The pool has threads for all jobs that
        run and wait.
        """
        self._add_job(1)
        try:
            yield
        finally:
            self._add_job(-1)

    def _add_job(self, number: int) -> None:
        with self._lock:
            self._jobs += number
            self._apply_soon()

    def _take(self) -> bool:
        with self._lock:
            if self._lent >= self._maximum:
                return False
            self._lent += 1
            self._apply_soon()
            return True

    def _give_back(self) -> None:
        with self._lock:
            self._lent -= 1
            self._apply_soon()

    def _apply_soon(self) -> None:
        if self._consumer is not None:
            self._consumer.hub.call_soon(self._apply)

    def _apply(self) -> None:
        """Set the prefetch count on Celery's hub, which changes it too and has no lock. Calls may
        be reordered.
        """
        with self._lock:
            if self._consumer is None:
                return
            total = self._lent + self._jobs
            difference = total - self._applied
            self._applied = total
            qos = self._consumer.qos
            if difference > 0:
                qos.increment_eventually(difference)
            elif difference < 0:
                qos.decrement_eventually(-difference)
            qos.update()  # before the hub waits for its next event
