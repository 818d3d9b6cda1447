"""How a worker process comes up and goes down. Imported by Celery with the tasks, in the worker itself."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import threading
import time
import warnings
from contextlib import suppress
from functools import lru_cache
from typing import Any

from celery.signals import worker_init, worker_process_init, worker_ready, worker_shutdown, worker_shutting_down

from poller import bootstrap, errors
from poller.domain import routing
from poller.observability import logs
from poller.workers import garbage
from poller.workers.polling import Poller
from poller.workers.presence import Presence

log = logs.get(__name__)

#: A stopping worker writes for at least so long, if its polls took all of `worker_drain_s`.
LEAST_CLOSING_S = 0.5
_drained_at = 0.0
_pid = os.getpid()
#: After all is said and done, before the process is ended even if some thread of a collector goes on.
LEAVE_S = 3.0

# Said at every lost connection. We want the default: a thread that polls cannot be cancelled, and need not be.
warnings.filterwarnings("ignore", message=r"\nIn Celery 5.1 we introduced an optional breaking change")


@lru_cache(maxsize=1)
def poller(hostname: str) -> Poller:
    """The poller of this process."""
    made = Poller(bootstrap.services(), hostname)
    made.watch()
    garbage.look_less_often()
    return made


@lru_cache(maxsize=1)
def presence(hostname: str) -> Presence:
    services = bootstrap.services()
    return Presence(services, poller(hostname), routing.parse_tags(services.settings.worker_tags))


@worker_init.connect
def _come_up(sender: Any, **_: Any) -> None:
    """Fail early, and by name: options, database and sinks are looked at before the first message."""
    from poller.db import migrate

    services = bootstrap.services()
    services.configure_logs()  # Celery asks for it only later
    _raise_open_files_limit()
    _tell_where_it_crashed()
    try:
        migrate.check(services.engine)
        presence(sender.hostname)
    except errors.ConfigError as error:
        hint = f"\n  try: {error.hint}" if error.hint else ""
        raise SystemExit(f"error[{error.code}]: {error}{hint}") from None
    for broken in services.registry.broken:
        log.error("collector_unusable", name=broken.name, distribution=broken.distribution, reason=broken.reason)


@worker_process_init.connect
def _after_fork(**_: Any) -> None:
    """A prefork child has its own connections and its own loop. (`solo` says this, too, and forks nobody.)"""
    if os.getpid() == _pid:
        return
    bootstrap.services.cache_clear()
    poller.cache_clear()


@worker_ready.connect
def _begin(sender: Any, **_: Any) -> None:
    """Rows that a dead worker could not write do not wait for our first poll."""
    poller(sender.hostname).writing.start()


@worker_shutting_down.connect
def _drain(sender: Any, **_: Any) -> None:
    """Running batches may finish for a while; then they are cut off and their targets handed back."""
    global _drained_at
    here = presence(sender)
    threading.Thread(target=here.stop, daemon=True).start()
    limit = bootstrap.services().settings.worker_drain_s
    _drained_at = time.monotonic() + limit
    timer = threading.Timer(limit, poller(sender).drain)
    timer.daemon = True
    timer.start()


@worker_shutdown.connect
def _go_down(sender: Any, **_: Any) -> None:
    """Nothing polls any more. What waits to be written gets the rest of the time, and then stays on disk."""
    if poller.cache_info().currsize:
        poller(sender.hostname).writing.close(max(LEAST_CLOSING_S, _drained_at - time.monotonic()))
        poller(sender.hostname).close()
    for sink in bootstrap.services().sinks:
        sink.close()
    end = threading.Timer(LEAVE_S, os._exit, (0,))  # a collector's thread that never ends would keep us
    end.daemon = True
    end.start()


def _tell_where_it_crashed() -> None:
    """Files, lines and functions on stderr: after a fault in C code, and when the watchdog's CPU limit ends us."""
    with suppress(OSError, ValueError, AttributeError, RuntimeError):  # a stderr without a descriptor
        faulthandler.enable(all_threads=False)
        faulthandler.register(signal.SIGVTALRM, all_threads=False, chain=True)


def _raise_open_files_limit() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < hard:
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))
