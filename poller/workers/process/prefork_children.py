"""What the children of a prefork worker did, and what they shall do: in memory that they share with it.

The worker speaks for all of them in its heartbeat, and tells them when to stop. Other pools have no children.
"""

from __future__ import annotations

import enum
import mmap
import os
import resource
import threading
import time
from collections.abc import Callable
from dataclasses import astuple, dataclass
from typing import TYPE_CHECKING

from billiard.process import current_process

if TYPE_CHECKING:
    from poller.workers.batch.worker_poller import Poller

LOOK_S = 0.25
_WIDTH = 8


class Phase(enum.IntEnum):
    """What a worker tells its children."""

    POLL = 0
    STOPPING = 1  # finish what runs, promise no retries
    DRAINED = 2  # cut off what runs


@dataclass(frozen=True, slots=True)
class Tally:
    """Numbers of one process, or of all of them together."""

    polls: int = 0
    in_flight: int = 0
    rss_bytes: int = 0
    spool_waiting: int = 0
    spool_dropped: int = 0

    def __add__(self, other: Tally) -> Tally:
        return Tally(*(a + b for a, b in zip(astuple(self), astuple(other), strict=True)))


_FIELDS = len(astuple(Tally()))


def tally(poller: Poller) -> Tally:
    """Of this process."""
    writing = poller.writing
    return Tally(poller.polls, poller.in_flight, _rss_bytes(), writing.waiting, writing.dropped)


class Children:
    """Made before the first fork; each child has a row, which its successor inherits."""

    def __init__(self, most: int) -> None:
        self._most = most
        self._page = mmap.mmap(-1, _WIDTH * (1 + most * _FIELDS))
        self._cells = memoryview(self._page).cast("q")

    def tell(self, phase: Phase) -> None:
        self._cells[0] = phase

    @property
    def phase(self) -> Phase:
        return Phase(self._cells[0])

    def total(self) -> Tally:
        return sum((self._row(at) for at in range(self._most)), Tally())

    def _row(self, at: int) -> Tally:
        first = 1 + at * _FIELDS
        return Tally(*self._cells[first : first + _FIELDS])

    def write(self, at: int, tally: Tally, before: Tally) -> None:
        """Counters go on where those of the predecessor ended."""
        sums = Tally(
            tally.polls + before.polls, spool_dropped=tally.spool_dropped + before.spool_dropped
        )
        first = 1 + at * _FIELDS
        values = (
            sums.polls,
            tally.in_flight,
            tally.rss_bytes,
            tally.spool_waiting,
            sums.spool_dropped,
        )
        for offset, value in enumerate(values):
            self._cells[first + offset] = value

    def report(self, tally: Callable[[], Tally], obey: Callable[[Phase], None]) -> None:
        """In a child: from now on say what it does, and do what it is told."""
        at = getattr(current_process(), "index", 0) % self._most
        threading.Thread(
            target=self._keep, args=(at, tally, obey), name="report", daemon=True
        ).start()

    def _keep(self, at: int, tally: Callable[[], Tally], obey: Callable[[Phase], None]) -> None:
        before, told = self._row(at), Phase.POLL
        while True:
            self.write(at, tally(), before)
            if self.phase is not told:
                told = self.phase
                obey(told)
            time.sleep(LOOK_S)


def _rss_bytes() -> int:
    try:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    except OSError:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
