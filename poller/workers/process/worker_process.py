"""The worker in this process: its poller, its jobs, its heartbeat, and its orderly end.

Celery's signals (`lifecycle`), the consumer, the pool and the tasks call it. The end has three
steps: `stop` (no new batches and jobs, running ones are cut off later), `leave` (hand back queued
batches), `close` (results to disk).
"""

from __future__ import annotations

import faulthandler
import os
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

from poller import app as application
from poller import bootstrap
from poller.collectors.memory import answer_budget
from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.sinks import registry
from poller.workers.batch.worker_poller import Poller
from poller.workers.jobs.job_runner import JobRunner
from poller.workers.process import handback, process_limits
from poller.workers.process.heartbeat import Heartbeat
from poller.workers.process.prefork_children import Phase, PreforkChildren
from poller.workers.process.subscriptions import subscribed_queues
from poller.workers.scrapes.scrape_runner import ScrapeRunner

log = logs.get(__name__)

#: The time to write results if the polls used all of `worker_drain_s`.
MIN_CLOSE_S = 0.5
#: The time for other threads after the worker has closed, before the process is ended.
LEAVE_S = 3.0
#: The time for batches that were cut off, before the process is ended without them. A call to a
#: silent Redis ends within it, and with the usual `worker_drain_s` it makes less than ten seconds.
FORCE_S = 4.0
#: The time to give back attempts of handlers that end with the process.
HAND_BACK_S = 1.0


@dataclass(slots=True)
class ProcessState:
    """The role of this process and the progress of its end."""

    pid: int = field(default_factory=os.getpid)
    owns_process: bool = False  # False: a test runs a worker in one of its threads
    children: PreforkChildren | None = None  # of a prefork worker
    is_child: bool = False
    #: Connections of the parent, which a child must neither use nor close.
    inherited: tuple[Any, ...] = ()
    stopping: threading.Event = field(default_factory=threading.Event)
    cut_off_mono: float | None = None  # running batches are cut off then; None: not stopping
    stopping_heartbeat: threading.Thread | None = None
    has_left: bool = False


state = ProcessState()


@lru_cache(maxsize=1)
def poller(hostname: str) -> Poller:
    """Return the poller of this process."""
    services = bootstrap.services()
    answer_budget.shared.limit = services.settings.answer_memory_mb * 2**20
    poller = Poller(services, hostname, is_watched=True)
    process_limits.collect_garbage_less_often()
    return poller


@lru_cache(maxsize=1)
def jobs(hostname: str) -> JobRunner:
    """Return the jobs of this process."""
    from poller.tasks import job  # the task needs this module

    parts = poller(hostname)
    return JobRunner(
        bootstrap.services(), hostname, parts.lending, job.send_runs, parts.black_box.record_job
    )


@lru_cache(maxsize=1)
def scrapes(hostname: str) -> ScrapeRunner:
    """Return the polls for scrapes of this process."""
    return poller(hostname).scrape_runner()


@lru_cache(maxsize=1)
def heartbeat(hostname: str) -> Heartbeat:
    """Return the heartbeat of this worker. A prefork child has none."""
    services = bootstrap.services()
    tags = queue_routing.parse_tags(services.settings.worker_tags)
    return Heartbeat(services, poller(hostname), jobs(hostname), tags, state.children)


def become_child(hostname: str, children: PreforkChildren) -> None:
    """After a fork: replace the parent's connections and loop, and report to the parent."""
    state.is_child = True
    state.inherited = (bootstrap.services(), heartbeat(hostname))
    bootstrap.services.cache_clear()
    poller.cache_clear()
    jobs.cache_clear()
    scrapes.cache_clear()

    level = int(os.environ.get("CELERY_LOG_LEVEL") or 0)
    application.configure_logs(level or None)  # with the redactor of this process
    bootstrap.services().publish_metrics("worker", f"{hostname}/{children.row() + 1}")
    bootstrap.services().start_traces("worker")
    threading.Thread(
        target=children.follow_worker,
        args=(poller(hostname), jobs(hostname)),
        name="report",
        daemon=True,
    ).start()


def stop(hostname: str, within_s: float) -> None:
    """Take no new batches and jobs, retry nothing, and cut off running ones after `within_s`.

    Only the first call has an effect.
    """
    if state.cut_off_mono is not None:
        return
    state.cut_off_mono = time.monotonic() + within_s
    state.stopping.set()
    state.stopping_heartbeat = threading.Thread(target=heartbeat(hostname).stop, daemon=True)
    state.stopping_heartbeat.start()
    poller(hostname).stop_retrying()
    jobs(hostname).stop()
    if state.children:
        state.children.set_phase(Phase.STOPPING)
    run_later(within_s, _cut_off, hostname)
    if state.owns_process:
        run_later(within_s + FORCE_S, _end_by_force, hostname)


def _cut_off(hostname: str) -> None:
    if state.children:
        state.children.set_phase(Phase.DRAINED)
    jobs(hostname).drain()
    poller(hostname).drain()


def _end_by_force(hostname: str) -> None:
    """End the process although a thread holds on to its batch or job, or Celery waits for its
    broker.

    The leases bring the targets of the batch back; the attempt of the job is given back.
    """
    hand_back_jobs(hostname)
    counts = heartbeat(hostname).counts()
    if not counts.in_flight and not counts.jobs:
        log.warning("worker_left_silent_broker", seconds=FORCE_S)
        os._exit(0)
    log.error("worker_did_not_stop", batches=counts.in_flight, jobs=counts.jobs, seconds=FORCE_S)
    with suppress(OSError, ValueError, AttributeError, RuntimeError):
        faulthandler.dump_traceback()  # files, lines and functions of each thread
    os._exit(1)


def wait_for_batches(hostname: str, within_s: float) -> None:
    """Wait until no batch and no job runs in any process of this worker."""
    until_mono = time.monotonic() + within_s
    while time.monotonic() < until_mono:
        counts = heartbeat(hostname).counts()
        if not counts.in_flight and not counts.jobs:
            return
        time.sleep(0.05)


def leave(hostname: str) -> None:
    """Hand back queued batches and close, after the last poll.

    Only the first call has an effect.
    """
    if state.has_left:
        return
    state.has_left = True
    try:
        stop(hostname, 0.0)  # a worker may end without a signal
        if state.stopping_heartbeat is not None:
            state.stopping_heartbeat.join(timeout=LEAVE_S)
        queues = subscribed_queues(application.app)
        handback.hand_back_queued(bootstrap.services(), poller(hostname), queues)
    finally:
        cut_off_mono = state.cut_off_mono or 0.0
        try:
            close(hostname, cut_off_mono - time.monotonic())
        finally:
            if state.owns_process:
                hand_back_jobs(hostname)


def hand_back_jobs(hostname: str) -> None:
    """Give back the attempts of jobs that still run: for a process that ends. Never raises."""
    if jobs.cache_info().currsize:
        jobs(hostname).hand_back_unended(HAND_BACK_S)


def close(hostname: str, within_s: float) -> None:
    """Close writers, sessions and sinks. Results that are not written in time stay on disk."""
    poller(hostname).writers.close(max(MIN_CLOSE_S, within_s))
    poller(hostname).close()
    registry.close_all(bootstrap.services().sinks)


def run_later(seconds: float, function: Callable[..., Any], *arguments: Any) -> None:
    timer = threading.Timer(seconds, function, arguments)
    timer.daemon = True
    timer.start()
