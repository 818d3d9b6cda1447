"""The leader's work for jobs that needs SQL, in a thread: a slow database delays no tick.

It keeps RedBeat's entries in step with the catalogue, closes abandoned runs, fires jobs with due
retries, fires all jobs now and then in case a message was lost, and tells events.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Sequence
from contextlib import suppress
from typing import Any, NamedTuple

from poller import errors
from poller.beat.jobs import job_messages
from poller.beat.jobs.due_entries import DueEntries
from poller.beat.jobs.job_clock import JobClock
from poller.beat.jobs.job_entries import JobEntries, JobEntry
from poller.beat.jobs.job_events import JobEvents
from poller.beat.jobs.served_queues import ServedQueues
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.jobs import job_catalog, job_history, job_ledger
from poller.db.jobs.job_catalog import CatalogJob
from poller.event_publisher import EventLog
from poller.observability import logs
from poller.state.cluster import beat_registry, job_totals
from poller.state.cluster.entry_records import EntryRecords
from poller.state.keys import ROUTINE_MARK
from poller.state.publish_errors import broker_errors
from poller.state.redis_client import store_errors

log = logs.get(__name__)

#: The shortest time between two passes, however often the thread is woken.
LEAST_PAUSE_S = 0.25
#: How often all jobs are fired. Their workers find in the ledger what is due.
FIRE_ALL_S = 30.0
#: A queue with more messages gets no further ones: its workers are behind.
FULL_QUEUE = 1_000
#: A job that is planned again is not told as overdue for this long: it has yet to catch up.
SETTLED_AFTER_S = 60.0
#: A job that no worker has had for so long is gone.
GONE_AFTER_MS = 24 * 3_600_000


class Tick(NamedTuple):
    """Functions of the tick that runs beside the thread."""

    wake: Callable[[], None]
    is_unsure_of_workers: Callable[[], bool]
    repair: Callable[[Exception], None]  # sets a key of a wrong type aside


class JobThread:
    """The thread of one beat process. It works only while the process leads."""

    def __init__(
        self,
        app: Any,
        services: Services,
        leader: Leader,
        clock: JobClock,
        due_entries: DueEntries,
        events: EventLog,
        stopping: threading.Event,
        tick: Tick,
    ) -> None:
        self._app = app
        self._services = services
        self._leader = leader
        self._clock = clock
        self._due_entries = due_entries
        self._stopping = stopping
        self._tick = tick
        self._entries = JobEntries(EntryRecords(services.redis, services.keys))
        self._events = JobEvents(services, events)
        self._queues = ServedQueues(services.redis, services.keys)
        self._wanted = threading.Event()
        self._term = 0  # of the leader, at the last pass
        self._fire_all_mono = 0.0  # when all jobs are fired next
        self._planned: dict[str, tuple[bool, float]] = {}  # job -> whether it is, and since when
        self._connection: Any = None
        self._producer: Any = None
        self._failure = ""  # the failure that was logged last and is not over
        self._thread = threading.Thread(target=self._run, name="jobs", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def run_soon(self) -> None:
        """Run without waiting for `job_tick_s`: jobs or their workers may have changed."""
        self._wanted.set()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._wanted.wait(self._services.settings.job_tick_s)
            self._wanted.clear()
            try:
                if self._leader.leads:
                    self.run_once()
                    self._log_failure("")
            except errors.PollerError as error:
                self._log_failure(str(error))
                self._disconnect()
                self._tick.repair(error)
            except Exception:  # door: the end of this thread; it must not die
                log.exception("job_thread_broke")
                self._disconnect()
            self._stopping.wait(LEAST_PAUSE_S)
        self._disconnect()

    def run_once(self) -> None:
        """One pass. Raises StoreError."""
        engine = self._services.engine
        now_ms = self._clock.read(engine)
        if self._term != self._leader.terms:
            self._start_term()
        jobs = job_catalog.listing(engine, with_gone=True)
        served = self._served(jobs)
        self._close_stale()
        # After the closing and before the firing: a run that is closed may hold its job back.
        summaries = job_history.summaries(engine)
        held = {name for name, each in summaries.items() if each.held_until_ms(now_ms) is not None}
        planned = [job for job in jobs if _is_planned(job, served, held)]
        if self._entries.sync([_entry(job) for job in planned], now_ms):
            self._tick.wake()

        self._fire(planned)
        settled = self._settled(jobs, planned)
        self._events.check(jobs, summaries, served, now_ms, settled)
        self._forget_lost(jobs, served)

    def _start_term(self) -> None:
        self._term = self._leader.terms
        self._entries.forget()
        self._tick.wake()  # it knows the clock now: entries may have fallen due without a leader
        self._fire_all_mono = time.monotonic() + FIRE_ALL_S
        self._planned = {}

    def _served(self, jobs: Sequence[CatalogJob]) -> set[str]:
        """The queues with workers. After a step of the clock no queue loses its workers."""
        keep = {job.queue for job in jobs} if self._tick.is_unsure_of_workers() else ()
        return self._queues.refresh(self._services.board.now_ms(), keep)

    def _settled(self, jobs: Sequence[CatalogJob], planned: Sequence[CatalogJob]) -> set[str]:
        """The jobs that have been planned, or have not been, for a while."""
        now_mono = time.monotonic()
        planned_names = {job.name for job in planned}
        seen = {}
        for job in jobs:
            is_planned = job.name in planned_names
            was_planned, since_mono = self._planned.get(job.name, (None, now_mono))
            seen[job.name] = (is_planned, since_mono if was_planned is is_planned else now_mono)
        self._planned = seen
        settled_mono = now_mono - SETTLED_AFTER_S
        return {name for name, (_, since_mono) in seen.items() if since_mono <= settled_mono}

    def _close_stale(self) -> None:
        closed = job_ledger.close_stale(self._services.engine)
        for run in closed:
            log.warning(
                "job_run_closed",
                reason="its runner sent no heartbeat",
                job=run.plan.job,
                scope=run.plan.scope,
                plan_ms=run.plan.plan_ms,
                runner=run.runner,
                attempt=run.attempt,
                is_retried=run.next_retry_ms is not None,
            )
        names = [run.plan.job for run in closed]
        job_totals.record_stale(self._services.redis, self._services.keys, names)

    def _fire(self, planned: Sequence[CatalogJob]) -> None:
        """Fire jobs with due retries; now and then all of them."""
        names = job_history.due_retries(self._services.engine)
        now_mono = time.monotonic()
        fires_all = now_mono >= self._fire_all_mono
        wanted = [job for job in planned if fires_all or job.name in names]
        full = self._full_queues({job.queue for job in planned})
        self._due_entries.skip_queues(full)
        self._send([(job.queue, job.name) for job in wanted if job.queue not in full])
        if fires_all:
            self._fire_all_mono = now_mono + FIRE_ALL_S

    def _full_queues(self, queues: Collection[str]) -> set[str]:
        names = sorted(queues)
        pipe = self._services.redis.pipeline(transaction=False)
        for queue in names:
            pipe.llen(queue)
            pipe.llen(queue + ROUTINE_MARK)
        with store_errors(self._services.redis):
            lengths = pipe.execute()
        depths = zip(names, lengths[::2], lengths[1::2], strict=True)
        return {queue for queue, urgent, routine in depths if urgent + routine > FULL_QUEUE}

    def _send(self, jobs: Sequence[tuple[str, str]]) -> None:
        """Send messages by a connection of this thread: a producer serves one thread."""
        if not jobs:
            return
        with broker_errors():
            if self._producer is None:
                self._connection = self._app.connection_for_write()
                self._producer = self._app.amqp.Producer(self._connection, auto_declare=False)
        job_messages.send(self._app, self._producer, jobs)

    def _disconnect(self) -> None:
        connection, self._connection, self._producer = self._connection, None, None
        if connection is not None:
            with suppress(errors.PollerError), broker_errors():
                connection.release()

    def _forget_lost(self, jobs: Sequence[CatalogJob], served: Collection[str]) -> None:
        """Jobs that no worker has had for long are gone; so are beats silent for long."""
        board_ms = self._services.board.now_ms()
        beat_registry.forget_lost(self._services.redis, self._services.keys, board_ms)
        waiting = [job for job in jobs if job.gone_ms is None and job.queue not in served]
        unserved = self._queues.unserved_ms({job.queue for job in waiting}, board_ms)
        gone = [job.name for job in waiting if unserved[job.queue] > GONE_AFTER_MS]
        if gone:
            job_catalog.mark_gone(self._services.engine, gone)
            self._wanted.set()

    def _log_failure(self, failure: str) -> None:
        """Log a failure when it starts, changes or ends, not at every pass. "" is success."""
        if failure and failure != self._failure:
            log.error("job_work_failed", error=failure)
        elif self._failure and not failure:
            log.info("job_work_recovered")
        self._failure = failure


def _is_planned(job: CatalogJob, served: Collection[str], held: Collection[str]) -> bool:
    is_wanted = job.gone_ms is None and job.paused_ms is None
    return is_wanted and job.queue in served and job.name not in held


def _entry(job: CatalogJob) -> JobEntry:
    return JobEntry(job.name, job.queue, job.terms.schedule, round(job.terms.delay_s * 1000))
