"""Fires what is due in RedBeat's schedule: jobs all at once, other entries through RedBeat.

No SQL and no code of jobs in here: it is part of the leader's tick.
"""

from __future__ import annotations

import logging
import math
import time
from collections.abc import Callable, Collection, Sequence
from typing import Any

from poller import errors
from poller.beat.jobs import job_entries, job_messages
from poller.beat.jobs.job_clock import JobClock
from poller.observability import logs
from poller.state.cluster.entry_records import Advance, Due, DueJob, EntryRecords

log = logs.get(__name__)

#: Pause before the entries are read again after an error.
RETRY_S = 5.0
#: The shortest pause before a tick that an entry asks for: many jobs share such a tick.
SHORTEST_PAUSE_S = 0.01


class DueEntries:
    """The part of a tick that fires entries; see also job_thread.py, which keeps them."""

    def __init__(self, app: Any, records: EntryRecords, clock: JobClock, instance: str) -> None:
        self._app = app
        self._records = records
        self._clock = clock
        self._instance = instance
        self._full_queues: frozenset[str] = frozenset()
        self._retry_mono = 0.0  # after an error: when the entries are read again
        self._others_mono = 0.0  # when RedBeat may run other entries again
        self._next_s = math.inf  # the next instant by the database's clock

    def skip_queues(self, queues: Collection[str]) -> None:
        """Send no message to these queues: they are full, and the ledger knows what is due."""
        self._full_queues = frozenset(queues)

    def pause_s(self) -> float:
        """The time until the next entry, in seconds."""
        database_s = self._database_s()
        if database_s is None:
            return math.inf
        return max(SHORTEST_PAUSE_S, self._next_s - database_s)

    def is_due(self, entry_s: float | None) -> bool:
        """Whether there is something to run. `entry_s` is the instant of the first entry."""
        self._next_s = math.inf
        if entry_s is None or time.monotonic() < self._retry_mono:
            return False
        database_s = self._database_s()
        if entry_s > max(database_s or 0.0, time.time()):
            self._next_s = entry_s
            return False
        return True

    def run(self, producer: Any, run_others: Callable[[Sequence[str]], float]) -> None:
        """Fire what is due. An entry that another program damaged stops nothing.

        `run_others` gets the keys of other entries and returns RedBeat's pause. Raises
        StoreUnavailable, and StoreError for a key of a wrong type.
        """
        database_s = self._database_s()
        try:
            due = self._records.due(database_s, time.time())
            self._next_s = math.inf if due.next_s is None else due.next_s
            if database_s is not None:
                self._fire(due.jobs, producer, round(database_s * 1000))
            self._run_others(due, run_others)
        except errors.StoreUnavailable:
            raise
        except errors.StoreError as error:
            self._retry_mono = time.monotonic() + RETRY_S
            if "WRONGTYPE" in str(error):
                raise  # the tick sets such a key aside
            log.error("entries_broke", error=str(error))

    def _database_s(self) -> float | None:
        now_ms = self._clock.now_ms()
        return None if now_ms is None else now_ms / 1000

    def _fire(self, due: Sequence[DueJob], producer: Any, now_ms: int) -> None:
        """Send the messages first: next instants take time to compute, and cost no lateness."""
        jobs = {row: job_entries.parse(row.job) for row in due}
        damaged = [row.key for row, job in jobs.items() if job is None]
        sound = [(row, job) for row, job in jobs.items() if job is not None]
        wanted = [(job.queue, job.name) for _, job in sound if job.queue not in self._full_queues]
        if wanted:
            job_messages.send(self._app, producer, wanted)
            self._log_fired(wanted)

        advances = []
        for row, job in sound:
            meta = job_entries.meta(row.meta, now_ms)
            advances.append(Advance(row.key, job.next_s(now_ms), meta))
        self._records.advance(advances)
        instants = [advance.instant_s for advance in advances]
        self._next_s = min((self._next_s, *instants))
        if damaged:
            log.error("job_entries_damaged", keys=damaged[:10], count=len(damaged))
            self._records.drop(damaged)

    def _log_fired(self, fired: Sequence[tuple[str, str]]) -> None:
        if logging.getLogger(__name__).isEnabledFor(logging.DEBUG):
            for queue, name in fired:
                log.debug("job_fired", job=name, queue=queue, instance=self._instance)

    def _run_others(self, due: Due, run_others: Callable[[Sequence[str]], float]) -> None:
        now_mono = time.monotonic()
        if due.others and now_mono >= self._others_mono:
            self._others_mono = now_mono + run_others(due.others)
