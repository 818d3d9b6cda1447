"""The log lines about one destination: when it goes down, and when it has caught up."""

from __future__ import annotations

import time

from poller.observability import logs

log = logs.get(__name__)

#: An outage within this time after the last one is not logged.
LOG_INTERVAL_S = 5.0


class OutageLog:
    """Logs when a destination goes down, and when all rows that waited for it are written."""

    def __init__(self, store: str) -> None:
        self.late_polls = 0  # written after they had waited in the spool
        self.reason = ""  # of the present outage; the newest one
        self._store = store
        self._down_mono: float | None = None
        self._logged_mono = -LOG_INTERVAL_S

    def mark_down(self, reason: str) -> None:
        self.reason = reason
        if self._down_mono is not None:
            return

        now_mono = time.monotonic()
        self._down_mono = now_mono

        if now_mono >= self._logged_mono + LOG_INTERVAL_S:
            self._logged_mono = now_mono
            log.warning("store_down", store=self._store, reason=reason)

    def mark_up(self) -> None:
        """Log the rows that were late, also those that a dead worker left."""
        is_logged = self._down_mono is None or self._down_mono == self._logged_mono
        if self.late_polls and is_logged:
            down_s = time.monotonic() - self._down_mono if self._down_mono else 0.0
            log.info(
                "store_caught_up",
                store=self._store,
                polls=self.late_polls,
                seconds=round(down_s, 1),
            )
        self.late_polls = 0
        self.reason = ""
        self._down_mono = None
