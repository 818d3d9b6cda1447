"""The poller of a worker process: it runs batches and ends them at shutdown."""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import suppress

from poller import errors
from poller.bootstrap import Services
from poller.collectors.api import Closeable
from poller.domain.failures import outcome
from poller.domain.failures.outcome import Outcome
from poller.observability import logs, tracing
from poller.workers.batch.batch_run import BatchRun
from poller.workers.batch.poller_parts import make_parts
from poller.workers.scrapes.scrape_runner import ScrapeRunner

log = logs.get(__name__)

#: At shutdown, sessions with devices are closed within this time.
CLOSE_SESSIONS_S = 1.5
#: An error of a store counts for this long: a batch that it stopped is tried again in between.
ERROR_LASTS_S = 15.0


class Poller:
    """One per worker process; `poll` is called from many threads.

    With `is_watched` a collector that blocks the event loop ends this process.
    """

    def __init__(self, services: Services, runner: str, *, is_watched: bool = False) -> None:
        self.runner = runner
        self._services = services
        self._parts = make_parts(services, runner, is_watched)
        self._last_error = (-ERROR_LASTS_S, "")  # of a store: when, and its text
        self.writers = self._parts.writers
        self.ender = self._parts.ender
        self.credentials = self._parts.credentials
        self.isolation = self._parts.isolation
        self.lending = self._parts.lending
        self.black_box = self._parts.black_box

    def scrape_runner(self) -> ScrapeRunner:
        """Return a runner of polls for scrapes, which shares the parts of this poller."""
        return ScrapeRunner(self._parts)

    def follow_inventory(self) -> None:
        """Start the copy of the inventory, in the process that polls. A second call does
        nothing.
        """
        self._parts.copy.start()

    def poll(
        self, token: str, ids: Sequence[int], attempt: int = 0, trace: str | None = None
    ) -> list[int]:
        """Poll one batch. Returns the failed targets that stay in flight for the next attempt.

        `trace` is the context of a batch that the leader chose to trace.
        """
        traced = tracing.begin_batch(trace, {"targets": len(ids), "attempt": attempt + 1})
        try:
            return BatchRun(self._parts, token, ids, attempt, traced).run()
        except (errors.StoreError, errors.SchemaMismatch) as error:
            self._last_error = (time.monotonic(), outcome.clean(str(error)))
            raise
        finally:
            if traced is not None:
                traced.end()

    @property
    def store_error(self) -> str:
        """The error of a store that results wait for, or that stopped a batch a moment ago."""
        failed_mono, text = self._last_error
        is_recent = time.monotonic() - failed_mono < ERROR_LASTS_S
        return self.writers.outage or (text if is_recent else "")

    def hand_back(self, token: str, ids: Sequence[int], attempt: int = 0) -> int:
        """Hand back a batch that no worker has started; its targets are due at once. Returns how
        many.
        """
        return BatchRun(self._parts, token, ids, attempt).hand_back_all()

    def conclude(self, token: str, attempt: int, target_id: int, result: Outcome) -> None:
        """End the run of one target for a process that died with it, unless another worker has it
        by now.
        """
        BatchRun(self._parts, token, [target_id], attempt).conclude(result)

    @property
    def polls(self) -> int:
        """Polls finished since the process started."""
        return self._parts.running.polls

    @property
    def in_flight(self) -> int:
        return len(self._parts.running)

    def stop_retrying(self) -> None:
        """From now on failed targets are handed back instead of retried."""
        self._parts.running.stopping.set()

    def drain(self) -> None:
        """Cut off running polls. The threads that wait for them hand their targets back."""
        self._parts.running.drain()

    def close(self) -> None:
        """Close sessions, child processes and the black box. No batch runs any more."""
        parts = self._parts
        with suppress(TimeoutError):  # a stuck loop ends with the process
            parts.poll_loop.run(self._close_sessions(), CLOSE_SESSIONS_S)
        parts.isolation.close()
        parts.black_box.close()

    async def _close_sessions(self) -> None:
        await self._parts.sessions.close()
        for name, collector in self._services.registry.collectors.items():
            if isinstance(collector, Closeable):
                try:
                    await collector.close()
                except Exception as error:  # noqa: BLE001  door: a plugin; the process ends anyway
                    log.warning("collector_not_closed", collector=name, error=type(error).__name__)
