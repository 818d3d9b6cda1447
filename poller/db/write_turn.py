"""The turn of a thread to write to a SQLite database: one at a time in a process."""

from __future__ import annotations

import weakref
from queue import Empty, SimpleQueue


class _Turn:
    """Goes to the next thread when nothing refers to it any more."""

    def __init__(self, turns: SimpleQueue[_Turn]) -> None:
        self._turns = weakref.ref(turns)

    def __del__(self) -> None:
        turns = self._turns()
        if turns is not None:
            turns.put(_Turn(turns))


class WriteTurns:
    """Threads wait here for their turn.

    Not a lock: a cancelled job has an exception raised in its thread, which comes right after a
    wait for a lock has ended, and before any line that could release it. A turn that is lost in
    this way passes on by itself.
    """

    def __init__(self) -> None:
        self._turns: SimpleQueue[_Turn] = SimpleQueue()
        self._turns.put(_Turn(self._turns))

    def take(self, within_s: float) -> _Turn | None:
        """Wait for the turn. It lasts while the caller keeps the result; None: it did not come."""
        try:
            return self._turns.get(timeout=within_s)
        except Empty:
            return None
