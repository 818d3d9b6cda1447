"""Start and end of a worker process: the handlers of Celery's signals.

Celery imports it with the tasks. Celery logs an exception of a handler and goes on; a handler of
the start therefore ends the process instead (`_whole_or_ended`).
"""

from __future__ import annotations

import atexit
import faulthandler
import os
import signal
import sys
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from functools import wraps
from typing import Any

from celery.signals import (
    worker_init,
    worker_process_init,
    worker_process_shutdown,
    worker_ready,
    worker_shutdown,
    worker_shutting_down,
)

from poller import app as application
from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.observability import logs
from poller.security import vault_keys
from poller.state.cluster import worker_queues
from poller.workers.guard import consumer_watchdog, loop_watchdog
from poller.workers.guard.consumer_watchdog import ConsumerWatchdog, StallEvents
from poller.workers.jobs.job_announcer import JobAnnouncer
from poller.workers.process import (
    database_wait,
    handback,
    pool_choice,
    process_limits,
    worker_process,
)
from poller.workers.process.prefork_children import PreforkChildren
from poller.workers.process.subscriptions import subscribed_queues

log = logs.get(__name__)

#: The pause before a process ends that cannot be set up: a pool starts the next child at once.
END_PAUSE_S = 1.0


def _whole_or_ended(start: Callable[..., None]) -> Callable[..., None]:
    """End the process if a handler of its start fails, so that none runs half set up."""

    @wraps(start)
    def whole(**arguments: Any) -> None:
        try:
            start(**arguments)
        except errors.ConfigError as error:
            hint = f"\n  try: {error.hint}" if error.hint else ""
            sys.stderr.write(f"error[{error.code}]: {error}{hint}\n")
            _end(os.EX_CONFIG)  # with this code a supervisor knows that a restart does not help
        except errors.StoreError as error:
            log.error("worker_not_started", error=str(error))
            _end(os.EX_TEMPFAIL)
        except Exception:  # door: Celery's signal, which would go on without this set-up
            log.exception("worker_not_started")
            _end(os.EX_SOFTWARE)

    return whole


def _end(exit_code: int) -> None:
    if worker_process.state.is_child:
        time.sleep(END_PAUSE_S)
    raise SystemExit(exit_code) from None


@worker_init.connect
@_whole_or_ended
def _start_up(sender: Any, **_: Any) -> None:
    """Check options, limits, database and sinks before the first message, and fail by name."""
    services = bootstrap.services()
    services.configure_logs()  # Celery configures its logs only later
    state = worker_process.state
    state.owns_process = threading.current_thread() is threading.main_thread()
    _write_faults_to_stderr()
    if state.owns_process:
        services.publish_metrics("worker", sender.hostname)
        services.start_traces("worker")
    _configure(sender, services)
    if state.owns_process:
        # Celery sends no signal at the end of a cold shutdown.
        atexit.register(worker_process.leave, sender.hostname)
    _log_plugin_problems(services)
    _log_key_problem(services)


def _configure(worker: Any, services: Services) -> None:
    """Set up the worker. Raises ConfigError."""
    pool_choice.configure(worker)

    batches = pool_choice.batches_per_process(worker)
    file_limit = process_limits.raise_file_limit()
    process_limits.check_file_limit(batches, services.settings.batch_size, file_limit)
    database_wait.wait_for_database(services.engine)

    if pool_choice.is_prefork(worker.pool_cls):
        worker_process.state.children = PreforkChildren(pool_choice.max_slots(worker))
    worker_process.heartbeat(worker.hostname)


def _log_plugin_problems(services: Services) -> None:
    for kind, installed in (("collector", services.registry), ("job", services.jobs)):
        for broken in installed.broken:
            log.error(
                f"{kind}_unusable",
                name=broken.name,
                distribution=broken.distribution,
                reason=broken.reason,
            )
        for name, notice in installed.deprecated.items():
            log.warning(f"{kind}_deprecated", name=name, notice=notice)


def _log_key_problem(services: Services) -> None:
    """Say once, at the start, that polls with stored credentials will fail."""
    with suppress(errors.StoreError):  # each poll of such a target says it, too
        problem = services.key_problem()
        if problem:
            log.error("secret_key_wrong", problem=problem, fix=vault_keys.RIGHT_KEY_HINT)


def _write_faults_to_stderr() -> None:
    """Have faults in C code and CPU limits write their stack to stderr."""
    with suppress(OSError, ValueError, AttributeError, RuntimeError):  # stderr without a descriptor
        faulthandler.enable(all_threads=False)
        faulthandler.register(signal.SIGVTALRM, all_threads=False, chain=True)


@worker_process_init.connect
@_whole_or_ended
def _after_fork(sender: str, **_: Any) -> None:
    """Set up a prefork child. The solo pool sends this signal, too, without a fork."""
    state = worker_process.state
    if os.getpid() != state.pid and state.children is not None:
        worker_process.become_child(sender, state.children)


@worker_process_shutdown.connect
def _close_child(sender: str, **_: Any) -> None:
    if worker_process.state.is_child:
        try:
            worker_process.close(sender, worker_process.MIN_CLOSE_S)
        finally:
            worker_process.hand_back_jobs(sender)


@worker_ready.connect
@_whole_or_ended
def _on_ready(sender: Any, **_: Any) -> None:
    """Write the spool of dead workers before the first poll, announce jobs, watch the consumer."""
    worker_process.poller(sender.hostname).writers.start()
    JobAnnouncer(bootstrap.services(), worker_process.state.stopping).start()
    if worker_process.state.owns_process:
        threading.Thread(
            target=_watch_consumer, args=(sender,), name="consumer-watchdog", daemon=True
        ).start()


def _watch_consumer(consumer: Any) -> None:
    """End the process when its consumer stalls for good: a supervisor starts another.

    The poll loop is well then: running batches and batches that were not started are handed back.
    """
    services = bootstrap.services()
    hostname = consumer.hostname

    def count_waiting() -> int:
        queues = subscribed_queues(application.app)
        return worker_queues.total_depth(services.redis, queues)

    watchdog = ConsumerWatchdog(consumer, count_waiting, StallEvents(services, hostname))
    if not watchdog.watch(worker_process.state.stopping):
        return

    worker_process.stop(hostname, 0.0)
    worker_process.wait_for_batches(hostname, worker_process.LEAVE_S)
    with suppress(errors.StoreError):
        batches = consumer_watchdog.unstarted_batches()
        handback.hand_back(worker_process.poller(hostname), batches)
    worker_process.leave(hostname)
    os._exit(loop_watchdog.EXIT_CODE)


@worker_shutting_down.connect
def _on_shutting_down(sender: str, how: str = "Warm", **_: Any) -> None:
    """In a warm shutdown running batches may finish for a while before they are cut off."""
    drain_s = bootstrap.services().settings.worker_drain_s if how == "Warm" else 0.0
    worker_process.stop(sender, drain_s)


@worker_shutdown.connect
def _on_shutdown(sender: Any, **_: Any) -> None:
    is_started = worker_process.poller.cache_info().currsize > 0
    if not is_started:
        return
    try:
        worker_process.leave(sender.hostname)
    finally:
        if worker_process.state.owns_process:  # a collector's thread may never end
            exit_code = sender.exitcode or 0
            worker_process.run_later(worker_process.LEAVE_S, os._exit, exit_code)
