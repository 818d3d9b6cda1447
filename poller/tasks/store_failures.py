"""Failures of Redis or SQL in a task: one log line a minute and a counter, no traceback.

The work is not lost: a batch has handed its targets back, and the leader fires jobs again.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

from poller import bootstrap, errors
from poller.observability import logs
from poller.observability.report_quota import Quota

log = logs.get(__name__)

#: The counter of all workers, among the totals of the board.
FAILURES_TOTAL = "store_failures"
#: Different failures that are logged in one minute.
LINES_PER_MINUTE = 10


class StoreFailures:
    """Logs and counts the failures of this process, safe for threads."""

    def __init__(self) -> None:
        self._lines = Quota(LINES_PER_MINUTE)
        self._lock = threading.Lock()
        self._uncounted = 0

    def record(self, task: str, error: errors.StoreError) -> None:
        text = str(error)
        unsaid = self._lines.admit((task, text))
        if unsaid is not None:
            log.error("task_postponed", task=task, error=text, unsaid_since_the_last=unsaid)
        self._count()

    def _count(self) -> None:
        """Add to the counter on the board. While Redis is away the failures wait here."""
        with self._lock:
            number = self._uncounted + 1
            self._uncounted = 0
        try:
            bootstrap.services().board.count({FAILURES_TOTAL: number})
        except errors.StoreError:
            with self._lock:
                self._uncounted += number


_failures = StoreFailures()


@contextmanager
def recorded(task: str) -> Iterator[None]:
    """Record a StoreError that is raised inside. Name it in the task's `throws` for Celery."""
    try:
        yield
    except errors.StoreError as error:
        _failures.record(task, error)
        raise
