"""A bounded number of cold targets is polled at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from poller.workers.batch.cold_start import MAXIMUM, ColdStartLimit

WITHIN_S = 10.0


@contextmanager
def in_thread(limit: ColdStartLimit, cold_targets: int) -> Iterator[threading.Event]:
    """A batch of cold targets in a thread; the event is set once it is admitted."""
    admitted, end = threading.Event(), threading.Event()

    def batch() -> None:
        with limit.admit(cold_targets):
            admitted.set()
            end.wait(WITHIN_S)

    thread = threading.Thread(target=batch)
    thread.start()
    try:
        yield admitted
    finally:
        end.set()
        thread.join(WITHIN_S)


def test_a_batch_beyond_the_limit_waits_until_another_ends() -> None:
    """A smaller batch is admitted meanwhile, and a batch without cold targets needs no room."""
    limit = ColdStartLimit(threading.Event())
    with ExitStack() as first, limit.admit(MAXIMUM // 2):
        first.enter_context(limit.admit(MAXIMUM // 2 - 1))
        with in_thread(limit, 2) as admitted:
            with limit.admit(0), limit.admit(1):
                assert not admitted.wait(0.3)
            first.close()
            assert admitted.wait(WITHIN_S)


def test_a_batch_larger_than_the_limit_is_admitted_alone() -> None:
    """It would wait for ever otherwise."""
    limit = ColdStartLimit(threading.Event())
    with ExitStack() as first:
        first.enter_context(limit.admit(MAXIMUM + 1))
        with in_thread(limit, 1) as admitted:
            assert not admitted.wait(0.3)
            first.close()
            assert admitted.wait(WITHIN_S)


def test_a_stopping_worker_admits_every_batch() -> None:
    """The batch is then handed back, which costs no CPU."""
    stopping = threading.Event()
    limit = ColdStartLimit(stopping)
    with limit.admit(MAXIMUM), in_thread(limit, 1) as admitted:
        stopping.set()
        assert admitted.wait(WITHIN_S)
