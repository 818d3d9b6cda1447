"""A limit on cold targets: those that this worker has not polled yet.

A cold target costs many times a warm one: it is read from SQL, and its shape is built. A worker
that joins a large fleet polls a bounded number of cold targets at a time; otherwise its CPU is so
busy that their devices seem silent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Cold targets in flight at a time: about one second of CPU.
MAXIMUM = 256
STOP_CHECK_S = 0.2


class ColdStartLimit:
    """One per worker process, safe for threads."""

    def __init__(self, stopping: threading.Event) -> None:
        self._admitted = 0
        self._changed = threading.Condition()
        self._stopping = stopping

    @contextmanager
    def admit(self, cold_targets: int) -> Iterator[None]:
        """Wait until this many cold targets fit under the limit. A stopping worker does not
        wait.
        """
        if not cold_targets:
            yield
            return
        self._wait_for_room(cold_targets)
        try:
            yield
        finally:
            with self._changed:
                self._admitted -= cold_targets
                self._changed.notify_all()

    def _wait_for_room(self, cold_targets: int) -> None:
        with self._changed:
            while self._is_full(cold_targets) and not self._stopping.is_set():
                self._changed.wait(STOP_CHECK_S)
            self._admitted += cold_targets

    def _is_full(self, cold_targets: int) -> bool:
        """One batch is always admitted, however large."""
        return self._admitted > 0 and self._admitted + cold_targets > MAXIMUM
