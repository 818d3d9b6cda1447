"""A rate limit for reports: one per kind and minute, and a total per minute. Memory is bounded."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

PERIOD_S = 60.0
#: Kinds to remember; beyond that the kind reported longest ago is forgotten.
KINDS = 256


@dataclass(slots=True)
class _Kind:
    silent_until: float = 0.0
    suppressed: int = 0


class Quota:
    """Admits reports. Thread-safe."""

    def __init__(self, total: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._total = total
        self._clock = clock
        self._lock = threading.Lock()
        self._kinds: OrderedDict[Hashable, _Kind] = OrderedDict()
        self._period_ends = 0.0
        self._left = total

    def admit(self, kind: Hashable) -> int | None:
        """The number of suppressed reports since the last admitted one; None to suppress this."""
        with self._lock:
            now = self._clock()
            if now >= self._period_ends:
                self._period_ends = now + PERIOD_S
                self._left = self._total

            entry = self._kinds.setdefault(kind, _Kind())
            suppress = now < entry.silent_until or not self._left
            if suppress:
                entry.suppressed += 1
                self._trim()
                return None

            self._left -= 1
            self._kinds[kind] = _Kind(silent_until=now + PERIOD_S)
            self._kinds.move_to_end(kind)
            self._trim()
            return entry.suppressed

    def _trim(self) -> None:
        while len(self._kinds) > KINDS:
            self._kinds.popitem(last=False)
