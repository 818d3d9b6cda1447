"""How a worker process comes up and goes down. Imported by Celery with the tasks, in the worker itself."""

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
from functools import lru_cache, partial
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
from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.sinks import registry
from poller.state.cluster import worker_queues
from poller.workers.batch.worker_poller import Poller
from poller.workers.guard import consumer_watchdog, loop_watchdog, stalls
from poller.workers.guard.consumer_watchdog import Cure, Intake
from poller.workers.process import (
    garbage,
    handback,
    open_files,
    pool_choice,
    prefork_children,
    thread_pool,
)
from poller.workers.process.heartbeat import Presence
from poller.workers.process.prefork_children import Children, Phase, Tally

log = logs.get(__name__)

#: A stopping worker writes for at least so long, if its polls took all of `worker_drain_s`.
LEAST_CLOSING_S = 0.5
#: After all is said and done, before the process is ended even if some thread of a collector goes on.
LEAVE_S = 3.0
#: After the last batch was cut off, before the process is ended even if some batch does not let go.
FORCE_S = 10.0


class _State:
    """Of this process: what it is, and since when it stops."""

    pid = os.getpid()
    is_program = False  # ours to end; not a test that has a worker in a thread
    children: Children | None = None  # of a prefork worker
    is_child = False
    stop_by: float | None = None  # polls are cut off then
    farewell: threading.Thread | None = None
    is_down = False
    #: What a child must neither use nor close: the connections are its parent's.
    inherited: tuple[Any, ...] = ()


@lru_cache(maxsize=1)
def poller(hostname: str) -> Poller:
    """The poller of this process."""
    made = Poller(bootstrap.services(), hostname)
    made.watch()
    garbage.look_less_often()
    return made


@lru_cache(maxsize=1)
def presence(hostname: str) -> Presence:
    services, mine = bootstrap.services(), poller(hostname)
    return Presence(
        services,
        mine,
        queue_routing.parse_tags(services.settings.worker_tags),
        partial(_tally, mine),
    )


def _tally(mine: Poller) -> Tally:
    """Of all processes of this worker, for its heartbeat."""
    own = prefork_children.tally(mine)
    return own + _State.children.total() if _State.children else own


@worker_init.connect
def _come_up(sender: Any, **_: Any) -> None:
    """Fail early, and by name: options, limits, database and sinks are looked at before the first message."""
    from poller.db import migrate

    services = bootstrap.services()
    services.configure_logs()  # Celery asks for it only later
    _State.is_program = threading.current_thread() is threading.main_thread()
    _tell_where_it_crashed()
    try:
        pool_choice.settle(sender)
        batches = pool_choice.batches_per_process(sender)
        open_files.check(batches, services.settings.batch_size, open_files.raise_limit())
        migrate.check(services.engine)
        presence(sender.hostname)
    except errors.ConfigError as error:
        hint = f"\n  try: {error.hint}" if error.hint else ""
        sys.stderr.write(f"error[{error.code}]: {error}{hint}\n")
        raise SystemExit(
            os.EX_CONFIG
        ) from None  # whoever supervises us need not hurry: no restart mends it
    if _State.is_program:
        atexit.register(
            _leave, sender.hostname
        )  # a cold shutdown does not tell anybody that it is over
    if pool_choice.is_prefork(sender.pool_cls):
        _State.children = Children(pool_choice.most_children(sender))
    for broken in services.registry.broken:
        log.error(
            "collector_unusable",
            name=broken.name,
            distribution=broken.distribution,
            reason=broken.reason,
        )
    for name, notice in services.registry.deprecated.items():
        log.warning("collector_deprecated", name=name, notice=notice)


@worker_process_init.connect
def _after_fork(sender: str, **_: Any) -> None:
    """A prefork child has its own connections and its own loop. (`solo` says this, too, and forks nobody.)"""
    if os.getpid() == _State.pid or _State.children is None:
        return
    _State.is_child = True
    _State.inherited = (bootstrap.services(), presence(sender))
    bootstrap.services.cache_clear()
    poller.cache_clear()
    application.configure_logs(
        int(os.environ.get("CELERY_LOG_LEVEL") or 0) or None
    )  # with this process's own secrets
    mine = poller(sender)
    _State.children.report(lambda: prefork_children.tally(mine), partial(_obey, mine))


def _obey(mine: Poller, phase: Phase) -> None:
    """In a child: its worker stops."""
    mine.stop_retrying()
    if phase is Phase.DRAINED:
        mine.drain()


@worker_process_shutdown.connect
def _child_goes_down(sender: str, **_: Any) -> None:
    if _State.is_child:
        _close(sender, LEAST_CLOSING_S)


@worker_ready.connect
def _begin(sender: Any, **_: Any) -> None:
    """Rows that a dead worker could not write do not wait for our first poll."""
    poller(sender.hostname).writing.start()
    if _State.is_program:
        _watch_intake(sender)


def _watch_intake(consumer: Any) -> None:
    services, name = bootstrap.services(), consumer.hostname
    then = {Cure.RESTART: "its consumer is started again", Cure.END: "the process ends"}
    Intake(
        consumer,
        waiting=lambda: worker_queues.total_depth(services.redis, _queues()),
        tell=lambda fault, cure: stalls.tell(services, name, fault.value, then[cure]),
        end=lambda: _give_up(name),
    ).start(stopping=lambda: _State.stop_by is not None)


def _give_up(hostname: str) -> None:
    """For whoever supervises us. The poll loop is well: what it polls is handed back, and what it had not begun."""
    stop(hostname, 0.0)
    until = time.monotonic() + LEAVE_S
    while _tally(poller(hostname)).in_flight and time.monotonic() < until:
        time.sleep(0.05)
    with suppress(errors.StoreError):
        handback.hand_back(poller(hostname), consumer_watchdog.unstarted())
    _leave(hostname)
    os._exit(loop_watchdog.EXIT_CODE)


@worker_shutting_down.connect
def _drain(sender: str, how: str = "Warm", **_: Any) -> None:
    """Running batches may finish for a while; then they are cut off and their targets handed back."""
    stop(sender, bootstrap.services().settings.worker_drain_s if how == "Warm" else 0.0)


def stop(hostname: str, within_s: float) -> None:
    """Say good-bye, take nothing new, promise no retries, and cut off what still runs then. Once."""
    if _State.stop_by is not None:
        return
    _State.stop_by = time.monotonic() + within_s
    _State.farewell = threading.Thread(target=presence(hostname).stop, daemon=True)
    _State.farewell.start()
    poller(hostname).stop_retrying()
    if _State.children:
        _State.children.tell(Phase.STOPPING)
    _later(within_s, _cut_off, hostname)
    if _State.is_program:
        _later(within_s + FORCE_S, _end_by_force, hostname)


def _cut_off(hostname: str) -> None:
    if _State.children:
        _State.children.tell(Phase.DRAINED)
    poller(hostname).drain()


def _end_by_force(hostname: str) -> None:
    """Some thread holds on to its batch, whatever it is told. The leases bring its targets back."""
    log.error("worker_did_not_stop", batches=_tally(poller(hostname)).in_flight, seconds=FORCE_S)
    with suppress(OSError, ValueError, AttributeError, RuntimeError):
        faulthandler.dump_traceback()  # where each thread is: files, lines and functions
    os._exit(1)


@worker_shutdown.connect
def _go_down(sender: Any, **_: Any) -> None:
    if poller.cache_info().currsize:  # it came up
        try:
            _leave(sender.hostname)
        finally:
            if _State.is_program:  # a collector's thread that never ends would keep us
                _later(LEAVE_S, os._exit, sender.exitcode or 0)


def _leave(hostname: str) -> None:
    """Nothing polls any more. What waits to be written gets the rest of the time, and then stays on disk. Once."""
    if _State.is_down:
        return
    _State.is_down = True
    try:
        stop(hostname, 0.0)  # it may end without a signal, too
        if _State.farewell is not None:
            _State.farewell.join(timeout=LEAVE_S)
        handback.hand_back_queued(bootstrap.services(), poller(hostname), _queues())
    finally:
        _close(hostname, (_State.stop_by or 0.0) - time.monotonic())


def _queues() -> set[str]:
    """Those this worker takes batches from, or believes to."""
    return {
        name
        for name in list(application.app.amqp.queues.consume_from)
        if name.startswith(queue_routing.QUEUE_PREFIX)
    }


def _close(hostname: str, within_s: float) -> None:
    poller(hostname).writing.close(max(LEAST_CLOSING_S, within_s))
    poller(hostname).close()
    registry.close_all(bootstrap.services().sinks)


def _later(seconds: float, do: Callable[..., Any], *arguments: Any) -> None:
    timer = threading.Timer(seconds, do, arguments)
    timer.daemon = True
    timer.start()


def _tell_where_it_crashed() -> None:
    """Files, lines and functions on stderr: after a fault in C code, and when the watchdog's CPU limit ends us."""
    with suppress(
        OSError, ValueError, AttributeError, RuntimeError
    ):  # a stderr without a descriptor
        faulthandler.enable(all_threads=False)
        faulthandler.register(signal.SIGVTALRM, all_threads=False, chain=True)


thread_pool.TaskPool.before_stop = stop
