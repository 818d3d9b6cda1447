"""A standby's DEBUG lines: which jobs fell due while another beat leads."""

from __future__ import annotations

import logging

from poller.observability import logs
from poller.state.cluster.entry_records import EntryRecords

log = logs.get(__name__)

#: How often the schedule is read, and how far ahead: the leader soon sets the next instant.
READ_MS = 1_000
AHEAD_MS = 2_000


class StandbyWatch:
    """Reads nothing unless DEBUG lines are wanted."""

    def __init__(self, records: EntryRecords, instance: str) -> None:
        self._records = records
        self._instance = instance
        self._coming: dict[str, float] = {}  # job -> its instant, in seconds
        self._read_ms = 0

    def check(self, now_ms: int) -> None:
        """Log the jobs that fell due since the last check. Raises StoreError.

        `now_ms` is the board's clock: a standby does not ask the database.
        """
        if not logging.getLogger(__name__).isEnabledFor(logging.DEBUG):
            return
        now_s = now_ms / 1000
        for job, instant_s in list(self._coming.items()):
            if instant_s <= now_s:
                del self._coming[job]
                log.debug("job_skipped", job=job, instance=self._instance, reason="it stands by")
        if abs(now_ms - self._read_ms) >= READ_MS:
            self._read_ms = now_ms
            self._coming |= self._records.coming(now_s, (now_ms + AHEAD_MS) / 1000)
