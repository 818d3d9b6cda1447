"""How old the data of the fleet are, for all viewers of a process: one bounded look a second.

A look is at a part of the fleet. A fleet that is larger than one look is counted over some seconds:
the picture is the last whole count, and before the first one the part that was looked at.
"""

from __future__ import annotations

import threading
import time
import weakref
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller.domain.fleet import poll_ages
from poller.domain.fleet.poll_ages import PollAges
from poller.state.fleet import poll_age_scan

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Targets of one look: about 7 ms of this process and 3 ms of Redis.
TARGETS = 5_000
#: The shortest time between two looks.
PAUSE_S = 0.9
#: A picture that nobody asked for during this time begins anew.
FORGOTTEN_S = 60.0


@dataclass(frozen=True, slots=True)
class AgePicture:
    """The ages of data. `whole` is False while only a part was looked at; `as_of_ms` is the end of
    the count, 0 before the first look.
    """

    ages: PollAges = field(default_factory=PollAges)
    whole: bool = False
    as_of_ms: int = 0
    seconds: float = 0.0  # the time that the count took


def picture(services: Services) -> AgePicture:
    """Return the picture after a look at the next part of the fleet. Raises StoreError."""
    with _lock:
        count = _counts.get(services)
        if count is None:
            count = _counts[services] = _FleetCount(services)
    return count.look()


class _FleetCount:
    """The running count and the last whole one, safe for threads."""

    def __init__(self, services: Services) -> None:
        self._services = weakref.proxy(services)
        self._lock = threading.Lock()
        self._begin()
        self._latest = AgePicture()
        self._looked_mono = 0.0

    def _begin(self) -> None:
        self._parts: list[PollAges] = []
        self._cursor = 0
        self._began_mono = 0.0

    def look(self) -> AgePicture:
        with self._lock:
            now_mono = time.monotonic()
            idle_s = now_mono - self._looked_mono
            if idle_s < PAUSE_S:
                return self._latest
            if idle_s > FORGOTTEN_S:
                self._begin()
                self._latest = AgePicture()
            self._latest = self._next(now_mono)
            self._looked_mono = time.monotonic()
            return self._latest

    def _next(self, now_mono: float) -> AgePicture:
        board = self._services.board
        now_ms = board.now_ms()
        window = poll_age_scan.read(board, self._cursor, TARGETS, now_ms)
        if not self._parts:
            self._began_mono = now_mono
        self._parts.append(window.ages)
        self._cursor = window.cursor
        if self._cursor and self._latest.whole:
            return self._latest
        seconds = now_mono - self._began_mono
        found = AgePicture(poll_ages.total(self._parts), not self._cursor, now_ms, seconds)
        if found.whole:
            self._begin()
        return found


_lock = threading.Lock()
_counts: weakref.WeakKeyDictionary[Services, _FleetCount] = weakref.WeakKeyDictionary()
