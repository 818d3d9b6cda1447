"""A look at SQL and Redis for the verdict: can both be used? Nothing is written to either."""

from __future__ import annotations

import threading
import time
from concurrent.futures import Future
from dataclasses import replace

from poller import errors
from poller.bootstrap import Services
from poller.db import revision
from poller.db.alerts import alert_listing
from poller.db.inventory import inventory_feed
from poller.domain.alerts import alert_numbers
from poller.domain.record.overview import Overview
from poller.presentation import formatting, job_states, running_workers
from poller.presentation.health_reasons import Stores
from poller.presentation.job_states import JobsCache
from poller.state import write_check

#: A look at SQL that takes longer goes on beside its caller, which is told so.
PATIENCE_S = 2.0


class StoreCheck:
    """The look of one process, safe for threads. One look at SQL runs at a time."""

    def __init__(
        self,
        services: Services,
        patience_s: float = PATIENCE_S,
        *,
        jobs: JobsCache | None = None,
    ) -> None:
        self._services = services
        self._sql = _SqlLook(services, patience_s, jobs or job_states.cache(services))

    def check(self, overview: Overview | None, redis_error: str = "") -> Stores:
        """Look at both stores. `overview` and `redis_error` are the result of reading the board.

        Never raises for a store; takes at most the patience and one call to Redis.
        """
        found = self._sql.look(overview)
        services = self._services
        write_error = "" if redis_error else write_check.error(services.redis, services.keys)
        return replace(found, redis_error=redis_error, write_error=write_error)


class _SqlLook:
    """Looks at SQL in a thread: a silent database does not stop the page or the command."""

    def __init__(self, services: Services, patience_s: float, jobs: JobsCache) -> None:
        self._services = services
        self._patience_s = patience_s
        self._lock = threading.Lock()
        self._look: Future[Stores] | None = None
        self._started_mono = 0.0
        self._jobs = jobs

    def look(self, overview: Overview | None) -> Stores:
        """Join the look that still runs, or begin one, and wait for its result."""
        with self._lock:
            if self._look is None or self._look.done():
                self._look = Future()
                self._started_mono = time.monotonic()
                arguments = (self._look, overview)
                threading.Thread(target=self._run, args=arguments, daemon=True).start()
            look = self._look
            started_mono = self._started_mono
        try:
            return look.result(self._patience_s)
        except TimeoutError:
            waited_ms = round((time.monotonic() - started_mono) * 1000)
            return Stores(sql_error=f"SQL has not answered for {formatting.age(waited_ms)}")

    def _run(self, look: Future[Stores], overview: Overview | None) -> None:
        try:
            look.set_result(self._look_at_sql(overview))
        except BaseException as error:  # noqa: BLE001  door: the end of this thread
            look.set_exception(error)

    def _look_at_sql(self, overview: Overview | None) -> Stores:
        engine = self._services.engine
        is_empty = overview is not None and overview.targets == 0
        workers = None if overview is None else running_workers.running(overview)
        try:
            revision.check(engine)
            targets = inventory_feed.count_enabled(engine) if is_empty else None
            jobs = self._jobs.get(workers).jobs
            numbers = alert_numbers.of_counts(alert_listing.counts(engine))
        except errors.SchemaMismatch as error:
            return Stores(sql_error=f"{error}; {error.hint}")
        except errors.PollerError as error:
            return Stores(sql_error=str(error))
        return Stores(sql_targets=targets, jobs=jobs, alerts=numbers)
