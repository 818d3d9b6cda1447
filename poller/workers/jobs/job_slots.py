"""The job slots of a worker process: how many handlers run at a time.

More messages than slots are rare. They wait a moment in the order they came; then the worker takes
no further ones from the job queues until all of them have run.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable

from poller.workers.batch.capacity_lending import CapacityLending

#: A run waits this long for a slot before the worker leaves the job queues for a while. Until then
#: it holds a place of polls, and the slots of short runs have become free.
PATIENCE_S = 0.5


class JobSlots:
    """One per worker process, safe for threads."""

    def __init__(self, count: int, lending: CapacityLending) -> None:
        self._free = count
        self._lending = lending
        self._waiting: deque[object] = deque()
        self._changed = threading.Condition()
        self._is_stopped = False
        self._pause: Callable[[bool], None] | None = None
        self._is_paused = False

    def attach(self, pause: Callable[[bool], None]) -> None:
        """Have a consumer whose subscription to job queues can be paused and resumed.

        A prefork child and the solo pool have none.
        """
        with self._changed:
            self._pause = pause

    @property
    def is_paused(self) -> bool:
        return self._is_paused

    def take(self) -> Slot | None:
        """Wait for a slot. None: the worker stops, or cannot wait because it has no consumer."""
        ticket = object()
        with self._changed:
            self._waiting.append(ticket)
        try:
            if self._wait(ticket, PATIENCE_S):
                return Slot(self)
            if self._is_stopped or not self._set_paused():
                return None
            with self._lending.lend_place():
                return Slot(self) if self._wait(ticket, None) else None
        finally:
            self._forget(ticket)

    def stop(self) -> None:
        """Let every waiting run leave without a slot."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def _wait(self, ticket: object, within_s: float | None) -> bool:
        """Wait for the turn of a ticket, and take a slot then."""

        def is_over() -> bool:
            return self._is_stopped or (self._free > 0 and self._waiting[0] is ticket)

        with self._changed:
            if not self._changed.wait_for(is_over, within_s) or self._is_stopped:
                return False
            self._free -= 1
            return True

    def _forget(self, ticket: object) -> None:
        with self._changed:
            self._waiting.remove(ticket)
            self._changed.notify_all()
            self._resume_if_idle()

    def release(self) -> None:
        """Have one more free slot."""
        with self._changed:
            self._free += 1
            self._changed.notify_all()
            self._resume_if_idle()

    def _set_paused(self) -> bool:
        """Leave the job queues. False if there is no consumer that can."""
        with self._changed:
            if self._pause is None:
                return False
            if not self._is_paused:
                self._is_paused = True
                self._pause(True)
            return True

    def _resume_if_idle(self) -> None:
        if self._is_paused and self._free > 0 and not self._waiting and self._pause:
            self._is_paused = False
            self._pause(False)


class Slot:
    """A slot that was taken. It is released once, whoever asks first."""

    def __init__(self, slots: JobSlots) -> None:
        self._slots: JobSlots | None = slots
        self._lock = threading.Lock()

    def release(self) -> None:
        with self._lock:
            slots, self._slots = self._slots, None
        if slots is not None:
            slots.release()
