"""The database's clock as this process knows it: it decides when a job is due.

Between two readings the monotonic clock counts, so the wall clock of this host does not matter.
"""

from __future__ import annotations

import time

from sqlalchemy.engine import Engine

from poller.db import database_clock

#: A reading that took longer is used only if the last good one is old, or the clock was set.
GOOD_READING_S = 0.05
OLD_AFTER_S = 60.0
STEP_MS = 1_000


class JobClock:
    """Unknown until the first reading. It is never ahead: the database read its clock before its
    reply came, so no job is fired before the workers see its plan as due.
    """

    def __init__(self) -> None:
        self._read_ms = 0
        self._read_mono: float | None = None

    def read(self, engine: Engine) -> int:
        """Read the database's clock. Raises StoreError."""
        sent_mono = time.monotonic()
        now_ms = database_clock.now_ms(engine)
        self.record(now_ms, sent_mono, time.monotonic())
        return now_ms

    def record(self, now_ms: int, sent_mono: float, read_mono: float) -> None:
        """Use a reading, unless it is worse than the one before."""
        known_ms = self._at(read_mono)
        if known_ms is not None and self._read_mono is not None:
            is_good = read_mono - sent_mono <= GOOD_READING_S
            is_old = read_mono - self._read_mono > OLD_AFTER_S
            was_set = abs(now_ms - known_ms) > STEP_MS
            if not (is_good or is_old or was_set):
                return
        self._read_ms, self._read_mono = now_ms, read_mono

    def now_ms(self) -> int | None:
        """The database's clock; None before the first reading."""
        return self._at(time.monotonic())

    def _at(self, mono: float) -> int | None:
        if self._read_mono is None:
            return None
        return self._read_ms + int((mono - self._read_mono) * 1000)
