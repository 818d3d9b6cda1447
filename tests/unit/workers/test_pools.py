"""Which pool, how many batches at a time, and may the process open so many files?"""

from __future__ import annotations

import os
from types import SimpleNamespace

import pytest
from celery.concurrency import prefork, solo, thread

from poller import errors
from poller.workers.process import open_files, pool_choice, prefork_children, thread_pool
from poller.workers.process.prefork_children import Children, Phase, Tally

CORES = len(os.sched_getaffinity(0))


@pytest.mark.parametrize(
    ("pool", "given", "expected"),
    [
        (thread_pool.TaskPool, False, thread_pool.TaskPool),
        (thread_pool.TaskPool, True, prefork.TaskPool),  # what Celery makes of `-P prefork`
        (thread.TaskPool, True, thread_pool.TaskPool),
        (solo.TaskPool, True, solo.TaskPool),
    ],
    ids=["nothing", "-P prefork", "-P threads", "-P solo"],
)
def test_the_pool_is_what_the_command_line_says(pool: type, given: bool, expected: type) -> None:
    """And threads when it says nothing."""
    assert pool_choice.chosen(pool, given) is expected


@pytest.mark.parametrize(
    ("pool", "given", "expected"),
    [
        (thread_pool.TaskPool, False, 16),
        (thread_pool.TaskPool, True, 16),
        (prefork.TaskPool, False, CORES),
        (prefork.TaskPool, True, 16),
        (solo.TaskPool, True, 1),
    ],
)
def test_each_pool_gets_a_number_that_suits_it(pool: type, given: bool, expected: int) -> None:
    """A process per core unless told otherwise; solo is one, or it would fetch what it cannot poll."""
    assert pool_choice.slots(pool, 16, given) == expected


@pytest.mark.parametrize(
    ("pool", "autoscale", "expected"),
    [
        (thread_pool.TaskPool, None, 4),
        (thread_pool.TaskPool, [40, 2], 40),
        (prefork.TaskPool, [40, 2], 1),
    ],
)
def test_limits_are_about_what_one_process_may_poll_at_a_time(
    pool: type, autoscale: object, expected: int
) -> None:
    """With `--autoscale` that is the most it may grow to."""
    worker = SimpleNamespace(pool_cls=pool, concurrency=4, options={"autoscale": autoscale})
    assert pool_choice.batches_per_process(worker) == expected


def test_a_concurrency_the_process_cannot_hold_is_refused_by_name() -> None:
    """With what it needs, what it has, and the number that would fit."""
    with pytest.raises(errors.InvalidSetting) as refused:
        open_files.check(1000, 64, limit=4096)
    assert "worker_concurrency: 1000 batches of 64 targets (batch_size) may need 64128" in str(
        refused.value
    )
    assert "this process may have 4096" in str(refused.value)
    assert "lower worker_concurrency to 62" in refused.value.hint
    open_files.check(62, 64, limit=4096)


def test_a_batch_that_is_too_large_on_its_own_is_refused_too() -> None:
    """No concurrency would do: the batch size must change."""
    with pytest.raises(errors.InvalidSetting) as refused:
        open_files.check(1, 1000, limit=1024)
    assert refused.value.hint.startswith("lower batch_size")


@pytest.mark.parametrize(
    ("files", "spare"), [(20 * 64, 4), (16 * 64, 0), (2**31, 112)], ids=["some", "none", "many"]
)
def test_no_more_places_are_lent_than_there_are_files_for(
    monkeypatch: pytest.MonkeyPatch, files: int, spare: int
) -> None:
    """A batch that waits keeps its sockets, and the one that has its place opens others."""
    monkeypatch.setattr(open_files, "raise_limit", lambda: files + open_files.OWN)
    pool = thread_pool.TaskPool(16)
    assert (pool.spare, pool.executor._max_workers) == (spare, 16 + spare)


def test_a_worker_adds_up_what_its_children_did() -> None:
    """The successor of a dead child goes on counting where that one ended; what it held is gone."""
    family = Children(3)
    family.write(
        0, Tally(polls=10, in_flight=1, rss_bytes=100, spool_waiting=2, spool_dropped=1), Tally()
    )
    family.write(2, Tally(polls=5, in_flight=1, rss_bytes=100), Tally())
    family.write(0, Tally(polls=3, rss_bytes=50), before=Tally(polls=10, spool_dropped=1))
    assert family.total() == Tally(
        polls=18, in_flight=1, rss_bytes=150, spool_waiting=0, spool_dropped=1
    )


def test_children_hear_what_their_worker_tells_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In memory they share: here a real child, which exits when it is told to."""
    monkeypatch.setattr(prefork_children, "LOOK_S", 0.01)
    family = Children(1)
    pid = os.fork()
    if pid == 0:
        try:
            family.report(lambda: Tally(polls=7), lambda phase: os._exit(40 + phase))
            os.read(os.pipe()[0], 1)  # for ever
        finally:
            os._exit(1)
    while family.total().polls != 7:
        assert os.waitpid(pid, os.WNOHANG) == (0, 0)
    family.tell(Phase.DRAINED)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 40 + Phase.DRAINED
