"""The batches that run in this worker process: count them, and cut them off at shutdown."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from poller.workers.batch.collection import Collection


class RunningBatches:
    """One per worker process, safe for threads."""

    def __init__(self) -> None:
        self.stopping = threading.Event()  # no retries: this process may be gone when they are due
        self.draining = threading.Event()  # running polls are cut off
        self._collections: set[Collection] = set()
        self._polls = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        with self._lock:
            return len(self._collections)

    @property
    def polls(self) -> int:
        """Polls finished since the process started."""
        return self._polls

    def count_polls(self, finished: int) -> None:
        with self._lock:
            self._polls += finished

    @contextmanager
    def tracked(self, collection: Collection) -> Iterator[None]:
        """Track a collection while the context lasts; cancel it if the context fails or the worker
        drains.

        After a failure the targets are handed back, so no poll of them may still run.
        """
        with self._lock:
            self._collections.add(collection)
        if self.draining.is_set():
            collection.cancel()
        try:
            yield
        except BaseException:
            collection.cancel()
            raise
        finally:
            with self._lock:
                self._collections.discard(collection)

    def drain(self) -> None:
        """Cut off running polls. The threads that wait for them hand their targets back."""
        self.stopping.set()
        self.draining.set()
        with self._lock:
            for collection in self._collections:
                collection.cancel()
