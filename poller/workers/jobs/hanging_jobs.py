"""Handlers that go on after their cancellation: a thread cannot be killed.

A job with such a handler is not run again in this process until the handler has ended. So a job
that hangs costs a worker one thread, and never the slots of other jobs.
"""

from __future__ import annotations

import threading
from collections import Counter

from poller.observability import logs
from poller.observability.report_quota import Quota
from poller.workers.jobs.job_attempt import Attempt

log = logs.get(__name__)

LINES_PER_MINUTE = 20


class HangingJobs:
    """One per worker process, safe for threads."""

    def __init__(self) -> None:
        self._handlers: Counter[str] = Counter()  # job to its handlers that hang
        self._lock = threading.Lock()
        self._lines = Quota(LINES_PER_MINUTE)

    def note(self, job: str, attempt: Attempt) -> None:
        """Note a job whose handler goes on after its attempt, until it ends."""
        with self._lock:
            self._handlers[job] += 1
        attempt.when_ended(lambda: self._forget(job))  # at once if it has ended

    def refuses(self, job: str) -> bool:
        """Whether the job is left to other workers, which is logged once a minute."""
        with self._lock:
            hangs = self._handlers[job] > 0
        if hangs and self._lines.admit(job) is not None:
            log.warning("job_refused", job=job, reason="an earlier run of it hangs in this process")
        return hangs

    def _forget(self, job: str) -> None:
        with self._lock:
            self._handlers[job] -= 1
