"""Targets this worker has not polled yet cost many times as much: they are read, and their shapes are made. A worker
that comes up to a whole fleet does a few batches of these at a time, or all their devices would seem to be silent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Batches of unknown targets under way at a time.
TURNS = 2
#: A batch with a larger share of them is one.
SHARE = 0.25
LOOK_S = 0.2


class Warming:
    """Of one worker process; safe for threads."""

    def __init__(self, stopping: threading.Event) -> None:
        self._turns = threading.BoundedSemaphore(TURNS)
        self._stopping = stopping

    @contextmanager
    def turn(self, unknown: int, targets: int) -> Iterator[None]:
        """Waits for it, if the batch needs one. When the worker stops nobody waits any more."""
        taken = unknown > targets * SHARE and self._taken()
        try:
            yield
        finally:
            if taken:
                self._turns.release()

    def _taken(self) -> bool:
        while not self._turns.acquire(timeout=LOOK_S):
            if self._stopping.is_set():
                return False
        return True
