"""The lease of one attempt: renewed by heartbeats, and lost when they fail for long.

A heartbeat is sent in a thread of its own: a database that does not answer must delay neither the
time-out of the run nor the end of the worker.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Mapping

from sqlalchemy.engine import Engine

from poller import errors
from poller.db.jobs import job_ledger
from poller.db.jobs.job_ledger import Claim
from poller.domain.failures import backoff
from poller.domain.jobs.job_terms import JobTerms
from poller.observability import logs

log = logs.get(__name__)

#: Pauses after a heartbeat that could not be written: the first, and the longest.
FIRST_PAUSE_S = 0.5
LONGEST_PAUSE_S = 5.0


class Lease:
    """`beat_if_due` and the properties belong to the thread that watches the run.

    since_mono: an instant before the claim.
    names: the run, for log lines.
    wake: called from another thread when a heartbeat has ended.
    """

    def __init__(
        self,
        engine: Engine,
        claim: Claim,
        terms: JobTerms,
        since_mono: float,
        names: Mapping[str, object],
        wake: Callable[[], None],
    ) -> None:
        self._engine = engine
        self._claim = claim
        self._terms = terms
        self._names = names
        self._wake = wake
        self._is_beating = False
        self._failures = 0
        self._until_mono = since_mono + terms.stale_timeout_s
        self._beat_mono = since_mono + terms.heartbeat_s

    @property
    def is_lost(self) -> bool:
        """Another runner may have the plan: the ledger said so, or no heartbeat was written."""
        return time.monotonic() >= self._until_mono

    @property
    def due_mono(self) -> float:
        """When to look again: at the next heartbeat, or when the lease ends."""
        return self._until_mono if self._is_beating else min(self._beat_mono, self._until_mono)

    def beat_if_due(self) -> None:
        """Send a heartbeat when it is time."""
        if self._is_beating or time.monotonic() < self._beat_mono:
            return
        self._is_beating = True
        thread = threading.Thread(target=self._beat, name="job-heartbeat", daemon=True)
        try:
            thread.start()
        except RuntimeError:  # the system has no more threads
            self._is_beating = False
            self._beat_mono = time.monotonic() + FIRST_PAUSE_S

    def _beat(self) -> None:
        began_mono = time.monotonic()
        claim, stale_s = self._claim, self._terms.stale_timeout_s
        try:
            is_held = job_ledger.heartbeat(self._engine, claim.run_id, claim.token, stale_s)
        except errors.StoreError as error:
            self._postpone(error)
        except Exception:  # door: the end of this thread; the run goes on to the end of its lease
            log.exception("job_heartbeat_broke", **self._names)
            self._postpone(None)
        else:
            self._failures = 0
            if is_held:
                self._renew(began_mono)
            else:
                self._until_mono = -math.inf
        self._is_beating = False
        self._wake()

    def _postpone(self, error: errors.StoreError | None) -> None:
        self._failures += 1
        if self._failures == 1 and error is not None:
            log.warning("job_heartbeat_failed", **self._names, error=str(error))
        pause_s = backoff.exponential(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
        self._beat_mono = time.monotonic() + min(pause_s, self._terms.heartbeat_s)

    def _renew(self, since_mono: float) -> None:
        self._until_mono = since_mono + self._terms.stale_timeout_s
        self._beat_mono = since_mono + self._terms.heartbeat_s
