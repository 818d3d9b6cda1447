"""Which pool does this worker use, and how many batches does it poll at a time?"""

from __future__ import annotations

import os
from typing import Any

from celery import concurrency
from celery.concurrency import prefork, solo, thread

from poller import app as application
from poller.settings import origins
from poller.workers.process import thread_pool


def settle(worker: Any) -> None:
    """Before Celery makes the pool: what the command line says counts, and each pool gets a number that suits it."""
    worker.pool_cls = chosen(
        concurrency.get_implementation(worker.pool_cls), application.on_command_line("pool")
    )
    worker.concurrency = slots(worker.pool_cls, worker.concurrency, _is_concurrency_given())


def chosen(pool: type, given: bool) -> type:
    """Celery takes `-P prefork` for its own default, and lets our setting win over it."""
    if pool is thread.TaskPool:
        return thread_pool.TaskPool
    return prefork.TaskPool if given and issubclass(pool, thread_pool.TaskPool) else pool


def slots(pool: type, concurrency: Any, given: bool) -> Any:
    """Solo polls one batch at a time, whatever it is told. Processes are for the cores, threads for waiting."""
    if issubclass(pool, solo.TaskPool):
        return 1
    if issubclass(pool, prefork.TaskPool) and not given:
        return len(os.sched_getaffinity(0))
    return concurrency


def batches_per_process(worker: Any) -> int:
    """So many may be under way in one process, which is what its limits are about."""
    if is_prefork(worker.pool_cls):
        return 1
    return most_children(worker)


def most_children(worker: Any) -> int:
    """Or threads: `--autoscale` may ask for more than there are at first."""
    most = (worker.options.get("autoscale") or [0])[0]
    return max(int(worker.concurrency), int(most))


def is_prefork(pool: type) -> bool:
    return issubclass(pool, prefork.TaskPool)


def is_solo(pool: type) -> bool:
    return issubclass(pool, solo.TaskPool)


def _is_concurrency_given() -> bool:
    return (
        application.on_command_line("concurrency")
        or origins(os.environ)["worker_concurrency"] != "default"
    )
