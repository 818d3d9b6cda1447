"""The heartbeat of a worker: its entry in the worker registry, periodic and after changes.

The period is `worker_registry.HEARTBEAT_S`; every time that depends on it is derived there.
"""

from __future__ import annotations

import os
import secrets
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

from celery.concurrency import solo
from celery.utils.time import rate
from celery.worker import state

import poller
from poller import errors
from poller.bootstrap import Services
from poller.domain.record import sink_report
from poller.domain.record.overview import Worker
from poller.domain.record.sink_report import SinkReport
from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.state.cluster import worker_registry
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard.crash_report import CrashReporter
from poller.workers.jobs.job_runner import JobRunner
from poller.workers.process import handback, process_limits
from poller.workers.process.prefork_children import (
    PreforkChildren,
    ProcessCounts,
    process_counts,
)
from poller.workers.process.subscriptions import Subscriptions

log = logs.get(__name__)

#: The time limit for the last heartbeat before the worker leaves the registry.
STOP_S = 3.0
POLL_TASK = "poller.poll"
#: Unusable jobs that a heartbeat names, and characters of each reason.
MOST_BROKEN = 20
LONGEST_REASON = 500


class Heartbeat:
    """One per worker, with its subscriptions and its crash reporter."""

    def __init__(
        self,
        services: Services,
        poller: Poller,
        jobs: JobRunner,
        tags: dict[str, str],
        children: PreforkChildren | None = None,
    ) -> None:
        self._services = services
        self._poller = poller
        self._jobs = jobs
        self._tags = tags
        self._children = children
        self._instance = secrets.token_hex(3)
        self._started_ms = 0
        self._seen_ms = 0  # the server's clock at the last heartbeat, and
        self._seen_mono = 0.0  # the same instant by this process's monotonic clock
        self._polls = 0
        self._polled_ms = 0
        self._slots = services.settings.worker_concurrency
        self._tasks: Mapping[str, Any] = {}  # Celery's, once a consumer is attached
        self._changed = threading.Event()
        self._garbage = process_limits.FailureGarbage()
        self._subscriptions = Subscriptions(services, tags, self._changed, poller.runner)
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._crash_reporter = CrashReporter(services, poller)
        self._reporting = threading.Thread(
            target=self._crash_reporter.run,
            args=(self._stopping,),
            name="crash-report",
            daemon=True,
        )

    def attach(self, consumer: Any) -> None:
        """Serve a consumer that (re)connected. Runs on Celery's hub."""
        if self._thread is None:
            # Before the first poll: a collector that ended the last worker must not end this one.
            self._crash_reporter.check()

        self._slots = consumer.pool.limit or self._slots
        self._tasks = consumer.app.tasks
        self._poller.lending.attach(consumer)
        self._subscriptions.attach(consumer)
        if not isinstance(consumer.pool, solo.TaskPool):  # its job runs in the thread of the hub
            self._jobs.slots.attach(self._subscriptions.pause_jobs)
        self._changed.set()

        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="heartbeat", daemon=True)
            self._thread.start()
            self._reporting.start()

    def detach(self) -> None:
        self._garbage.note_lost_connection()
        self._poller.lending.detach()
        self._subscriptions.detach()

    def stop(self) -> None:
        """Leave the worker registry: no more batches are queued for this worker alone."""
        self._subscriptions.stop()
        self._stopping.set()
        self._changed.set()
        if self._thread is not None:
            self._thread.join(timeout=STOP_S)  # a later heartbeat would register the worker again

        key = self._view(ProcessCounts(), ()).key
        try:
            worker_registry.leave(self._services.redis, self._services.keys, key)
        except errors.StoreError as error:
            log.warning("worker_not_deregistered", error=str(error))

        if self._reporting.is_alive():
            self._reporting.join(timeout=STOP_S)

    def counts(self) -> ProcessCounts:
        """Return the counts of all processes of this worker."""
        counts = process_counts(self._poller, self._jobs)
        if self._children is not None:
            counts += self._children.total()
        return counts

    def sink_reports(self, now_ms: int) -> list[SinkReport]:
        """Return the reports of all sinks of this worker, without secrets."""
        reports = self._poller.writers.sink_reports(now_ms)
        if self._children is not None:
            reports += self._children.sink_reports.read_all()
        redact = self._services.redactor.text
        return [
            replace(
                each,
                error=redact(each.error),
                hint=redact(each.hint),
                left_out_reason=redact(each.left_out_reason),
            )
            for each in sink_report.combine(reports)
        ]

    def _run(self) -> None:
        while True:
            has_changed = self._changed.wait(worker_registry.HEARTBEAT_S)
            self._changed.clear()
            if self._stopping.is_set():
                return
            self._announce(has_changed)
            self._hand_back_left()
            self._garbage.collect_if_due()

    def _announce(self, has_changed: bool) -> None:
        """Write one heartbeat. A change wakes the leader, which may wait for this worker."""
        try:
            now_ms = self._now_ms()
            counts = self.counts()
            self._started_ms = self._started_ms or now_ms
            if counts.polls != self._polls:
                self._polls = counts.polls
                self._polled_ms = now_ms
            view = self._view(counts, self.sink_reports(now_ms))
            self._seen_ms = worker_registry.announce(
                self._services.redis, self._services.keys, view, has_changed
            )
            self._seen_mono = time.monotonic()
        except errors.StoreError as error:
            log.warning("heartbeat_failed", error=str(error))
        except Exception:  # door: the end of this thread; it must not die
            log.exception("heartbeat_broke")

    def _hand_back_left(self) -> None:
        """Hand back the batches in queues that were left for a drain, if no other worker takes
        them.
        """
        left = self._subscriptions.take_left()
        queues = [name for name in left if name.startswith(queue_routing.QUEUE_PREFIX)]
        if queues:
            try:
                handback.hand_back_queued(self._services, self._poller, queues)
            except Exception:  # door: the broker's client; the leases bring the targets back
                log.exception("hand_back_broke")

    def _now_ms(self) -> int:
        """The server's clock; only the first heartbeat asks for it. Raises StoreError."""
        if not self._seen_ms:
            return self._services.board.now_ms()
        return self._seen_ms + round((time.monotonic() - self._seen_mono) * 1000)

    def _view(self, counts: ProcessCounts, sinks: Sequence[SinkReport]) -> Worker:
        registry = self._services.registry
        return Worker(
            name=self._poller.runner,
            seen_ms=0,
            started_ms=self._started_ms,
            polls=counts.polls,
            in_flight=counts.in_flight,
            rss_bytes=counts.rss_bytes,
            tags=self._tags,
            collectors=dict(registry.distributions),
            queues=self._subscriptions.served,
            sessions=registry.keeping_sessions,
            own_queues=self._services.settings.target_homes,
            costs=registry.costs,
            broken={broken.name: broken.state for broken in registry.broken},
            broken_jobs=self._broken_jobs,
            slots=self._slots,
            spool_waiting=counts.spool_waiting,
            spool_dropped=counts.spool_dropped,
            secret_hits=counts.secret_hits,
            secret_misses=counts.secret_misses,
            instance=self._instance,
            polled_ms=self._polled_ms,
            lent=min(self._poller.lending.lent, counts.in_flight),
            rate_limit=self._rate_limit(),
            store_error=self._poller.store_error,
            pid=os.getpid(),
            sinks=sinks,
            version=poller.__version__,
            drain=self._subscriptions.drain,
            unfinished=len(state.requests),
        )

    @cached_property
    def _broken_jobs(self) -> dict[str, dict[str, str]]:
        """The jobs that cannot be used here, and why: no other process can tell."""
        redact = self._services.redactor.text
        return {
            broken.name: {
                "distribution": broken.distribution,
                "reason": redact(broken.reason)[:LONGEST_REASON],
                "hint": redact(broken.hint)[:LONGEST_REASON],
                "state": str(broken.state),
            }
            for broken in self._services.jobs.broken[:MOST_BROKEN]
        }

    def _rate_limit(self) -> str:
        """The limit that `celery control rate_limit` set for polls; "" without one."""
        task = self._tasks.get(POLL_TASK)
        limit = getattr(task, "rate_limit", None)
        return str(limit) if rate(limit) else ""  # "0" stands for no limit
