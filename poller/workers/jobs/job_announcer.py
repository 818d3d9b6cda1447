"""Announces the jobs of a worker in SQL, where the leader reads them.

It begins when the worker starts and goes on for ever: a database that was away, restored or flushed
gets its rows. Nothing else waits for it.
"""

from __future__ import annotations

import threading

from poller import errors
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.jobs import job_catalog
from poller.domain.failures import backoff
from poller.observability import logs

log = logs.get(__name__)

#: Seconds between two announcements. One that changes nothing is one read.
AGAIN_S = 300.0
#: Pauses after a failure: the first, and the longest.
FIRST_PAUSE_S = 1.0
LONGEST_PAUSE_S = 15.0


class JobAnnouncer:
    """The thread of one worker. A worker without job slots announces nothing."""

    def __init__(self, services: Services, stopping: threading.Event) -> None:
        self._services = services
        self._stopping = stopping
        self._failures = 0
        self._since_ms: int | None = None  # of the first announcement, by the database's clock

    def start(self) -> None:
        if self._services.settings.worker_jobs:
            threading.Thread(target=self._run, name="job-announcer", daemon=True).start()

    def _run(self) -> None:
        pause_s = 0.0
        while not self._stopping.wait(pause_s):
            pause_s = self._announce()

    def _announce(self) -> float:
        """Announce all jobs. Returns the pause until the next announcement."""
        jobs = self._services.jobs
        try:
            for queue, specs in jobs.by_queue().items():
                distribution = jobs.distributions[specs[0].name]
                terms = [spec.terms for spec in specs]
                job_catalog.announce(
                    self._services.engine, queue, distribution, terms, self._since_ms
                )
            if self._since_ms is None:
                self._since_ms = database_clock.now_ms(self._services.engine)
        except errors.StoreError as error:
            self._failures += 1
            if self._failures == 1:
                log.warning("jobs_not_announced", error=str(error))
        except Exception:  # door: the end of this thread; it must not die
            self._failures += 1
            log.exception("job_announcer_broke")
        else:
            self._failures = 0
            return AGAIN_S
        return backoff.exponential(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
