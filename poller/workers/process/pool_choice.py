"""Which pool a worker uses, and how many batches it polls at a time."""

from __future__ import annotations

import os
from typing import Any

from celery import concurrency
from celery.concurrency import prefork, solo, thread

from poller import app as application
from poller.settings import origins
from poller.workers.process import thread_pool


def configure(worker: Any) -> None:
    """Set pool and concurrency of a worker before Celery creates the pool."""
    pool = concurrency.get_implementation(worker.pool_cls)
    worker.pool_cls = pool_class(pool, application.on_command_line("pool"))
    worker.concurrency = slots(worker.pool_cls, worker.concurrency, _is_concurrency_set())


def pool_class(pool: type, is_set: bool) -> type:
    """Return the pool of the command line, or the default.

    Celery takes `-P prefork` for its own default and replaces it with the configured pool.
    """
    if pool is thread.TaskPool:
        return thread_pool.TaskPool
    is_replaced = is_set and issubclass(pool, thread_pool.TaskPool)
    return prefork.TaskPool if is_replaced else pool


def slots(pool: type, concurrency: Any, is_set: bool) -> Any:
    """Return the concurrency for a pool: one batch for solo, a process per core for prefork."""
    if issubclass(pool, solo.TaskPool):
        return 1
    if issubclass(pool, prefork.TaskPool) and not is_set:
        return len(os.sched_getaffinity(0))
    return concurrency


def batches_per_process(worker: Any) -> int:
    """Return the number of batches that one process may poll at a time."""
    return 1 if is_prefork(worker.pool_cls) else max_slots(worker)


def max_slots(worker: Any) -> int:
    """Return the largest number of threads or children, with `--autoscale` its maximum."""
    autoscale = worker.options.get("autoscale") or [0]
    autoscale_maximum = int(autoscale[0])
    return max(int(worker.concurrency), autoscale_maximum)


def is_prefork(pool: type) -> bool:
    return issubclass(pool, prefork.TaskPool)


def _is_concurrency_set() -> bool:
    origin = origins(os.environ)["worker_concurrency"]
    return application.on_command_line("concurrency") or origin != "default"
