"""How often may the same thing be said? Once a minute for each kind, and only so much in all; memory is bounded."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

PERIOD_S = 60.0
#: Kinds that are remembered; of more, the one that was said longest ago is forgotten.
KINDS = 256


class Quota:
    """Safe for threads."""

    def __init__(self, in_all: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._in_all = in_all
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: OrderedDict[Hashable, list[float]] = (
            OrderedDict()
        )  # until when it is silent, times unsaid
        self._until, self._left = 0.0, in_all

    def admit(self, kind: Hashable) -> int | None:
        """May it be said now? Then how often it went unsaid since the last time; else None."""
        now = self._clock()
        with self._lock:
            if now >= self._until:
                self._until, self._left = now + PERIOD_S, self._in_all
            known = self._kinds.setdefault(kind, [0.0, 0])
            if now < known[0] or not self._left:
                known[1] += 1
                self._trim()
                return None
            self._left -= 1
            unsaid, self._kinds[kind] = int(known[1]), [now + PERIOD_S, 0]
            self._kinds.move_to_end(kind)
            self._trim()
            return unsaid

    def _trim(self) -> None:
        while len(self._kinds) > KINDS:
            self._kinds.popitem(last=False)
