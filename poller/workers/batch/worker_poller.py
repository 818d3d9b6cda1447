"""The poller of a worker process: it makes what all batches share, runs batches, and ends them at
shutdown.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from poller.bootstrap import Services
from poller.collectors.api import Closeable
from poller.collectors.sessions import Sessions
from poller.domain.failures.outcome import Outcome
from poller.observability import logs
from poller.settings import policies
from poller.workers.batch.batch_run import BatchRun, PollerParts
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.batch.cold_start import ColdStartLimit
from poller.workers.batch.credential_cache import CredentialCache
from poller.workers.batch.event_loop import PollLoop
from poller.workers.batch.patient_board import PatientBoard
from poller.workers.batch.retries import Retries
from poller.workers.batch.running_batches import RunningBatches
from poller.workers.batch.target_cache import TargetCache
from poller.workers.batch.verdict import Judge
from poller.workers.guard.black_box import BlackBox
from poller.workers.guard.collector_incidents import CollectorIncidents
from poller.workers.guard.collector_threads import CollectorThreads, ThreadLimits
from poller.workers.guard.consumer_watchdog import StallEvents
from poller.workers.guard.isolation import Isolation
from poller.workers.guard.loop_watchdog import LoopWatchdog
from poller.workers.results.writers import Writers

log = logs.get(__name__)

#: At shutdown, sessions with devices are closed within this time.
CLOSE_SESSIONS_S = 1.5


class Poller:
    """One per worker process; `poll` is called from many threads.

    With `is_watched` a collector that blocks the event loop ends this process.
    """

    def __init__(self, services: Services, runner: str, *, is_watched: bool = False) -> None:
        self.runner = runner
        self._services = services
        self._parts = _make_parts(services, runner, is_watched)
        self.writers = self._parts.writers
        self.isolation = self._parts.isolation
        self.lending = self._parts.lending

    def poll(self, token: str, ids: Sequence[int], attempt: int = 0) -> list[int]:
        """Poll one batch. Returns the failed targets that stay in flight for the next attempt."""
        return BatchRun(self._parts, token, ids, attempt).run()

    def hand_back(self, token: str, ids: Sequence[int], attempt: int = 0) -> int:
        """Hand back a batch that no worker has started; its targets are due at once. Returns how
        many.
        """
        return BatchRun(self._parts, token, ids, attempt).hand_back_all()

    def conclude(self, token: str, attempt: int, target_id: int, outcome: Outcome) -> None:
        """End the run of one target for a process that died with it, unless another worker has it
        by now.
        """
        BatchRun(self._parts, token, [target_id], attempt).conclude(outcome)

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


def _make_parts(services: Services, runner: str, is_watched: bool) -> PollerParts:
    settings = services.settings
    running = RunningBatches()
    black_box = BlackBox(settings.home, runner, services.registry.distributions)
    watchdog = None
    if is_watched:
        watchdog = LoopWatchdog(black_box, StallEvents(services, runner))
        black_box.enable_faulthandler()
    incidents = CollectorIncidents()
    limits = ThreadLimits(settings.blocking_threads, settings.stuck_threads)
    threads = CollectorThreads(limits, black_box.thread_marks, black_box.collector_of, incidents)
    poll_loop = PollLoop(black_box, threads, watchdog)
    isolation = Isolation(services, poll_loop, incidents)
    return PollerParts(
        runner=runner,
        services=services,
        board=PatientBoard(services.board, running.draining),
        running=running,
        cold_start=ColdStartLimit(running.draining),
        lending=CapacityLending(),
        targets=TargetCache(services.engine, services.registry, settings.target_cache),
        credentials=CredentialCache(services, settings.secret_cache_s),
        poll_loop=poll_loop,
        black_box=black_box,
        isolation=isolation,
        sessions=Sessions(policies.session_rules(settings)),
        writers=Writers(services.engine, services.sinks, settings, runner),
        retries=Retries(settings),
        judge=Judge(settings, services.staleness),
        margin_ms=round(settings.lease_margin_s * 1000),
        queue_wait_ms=round(settings.queue_wait_s * 1000),
    )
