"""The pool of a worker and its concurrency."""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from celery.concurrency import prefork, solo, thread

from poller.workers.process import pool_choice, thread_pool

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("pool", "is_set", "expected"),
    [
        (thread_pool.TaskPool, False, thread_pool.TaskPool),
        (thread_pool.TaskPool, True, prefork.TaskPool),  # Celery's answer to `-P prefork`
        (thread.TaskPool, True, thread_pool.TaskPool),
        (solo.TaskPool, True, solo.TaskPool),
    ],
    ids=["nothing", "-P prefork", "-P threads", "-P solo"],
)
def test_the_command_line_chooses_the_pool(pool: type, is_set: bool, expected: type) -> None:
    """The default is the pool of threads."""
    assert pool_choice.pool_class(pool, is_set) is expected


@pytest.mark.parametrize(
    ("pool", "is_set", "expected"),
    [
        (thread_pool.TaskPool, False, 16),
        (thread_pool.TaskPool, True, 16),
        (prefork.TaskPool, False, CORES),
        (prefork.TaskPool, True, 16),
        (solo.TaskPool, True, 1),
    ],
)
def test_the_default_concurrency_depends_on_the_pool(
    pool: type, is_set: bool, expected: int
) -> None:
    """Prefork has a process per core; a solo worker would fetch more than it can poll."""
    assert pool_choice.slots(pool, 16, is_set) == expected


@pytest.mark.parametrize(
    ("pool", "autoscale", "expected"),
    [
        (thread_pool.TaskPool, None, 4),
        (thread_pool.TaskPool, [40, 2], 40),
        (prefork.TaskPool, [40, 2], 1),
    ],
)
def test_the_batches_of_one_process_follow_from_pool_and_autoscale(
    pool: type, autoscale: object, expected: int
) -> None:
    """With `--autoscale` the largest number counts."""
    worker = SimpleNamespace(pool_cls=pool, concurrency=4, options={"autoscale": autoscale})
    assert pool_choice.batches_per_process(worker) == expected
