"""Targets this worker has not polled yet cost many times as much: they are read, and their shapes are made. A worker
that comes up to a whole fleet takes a limited number of these at a time, or all their devices would seem to be silent.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

#: Unknown targets under way at a time: about a second of CPU.
MOST = 256
LOOK_S = 0.2


class Warming:
    """Of one worker process; safe for threads."""

    def __init__(self, stopping: threading.Event) -> None:
        self._under_way = 0
        self._changed = threading.Condition()
        self._stopping = stopping

    @contextmanager
    def turn(self, unknown: int) -> Iterator[None]:
        """Waits until there is room for so many. When the worker stops nobody waits any more."""
        if not unknown:
            yield
            return
        self._enter(unknown)
        try:
            yield
        finally:
            with self._changed:
                self._under_way -= unknown
                self._changed.notify_all()

    def _enter(self, unknown: int) -> None:
        with self._changed:
            while (
                self._under_way and self._under_way + unknown > MOST and not self._stopping.is_set()
            ):
                self._changed.wait(LOOK_S)
            self._under_way += unknown
