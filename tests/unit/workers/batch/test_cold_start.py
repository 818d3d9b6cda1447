"""Only so many targets that nobody knows yet are polled at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from poller.workers.batch.cold_start import MAXIMUM, ColdStartLimit

WITHIN_S = 10.0


@contextmanager
def in_thread(limit: ColdStartLimit, unknown: int) -> Iterator[threading.Event]:
    """A batch of unknown targets in a thread of its own; the event says that it has its turn."""
    began, end = threading.Event(), threading.Event()

    def batch() -> None:
        with limit.admit(unknown):
            began.set()
            end.wait(WITHIN_S)

    thread = threading.Thread(target=batch)
    thread.start()
    try:
        yield began
    finally:
        end.set()
        thread.join(WITHIN_S)


def test_who_finds_no_room_waits_until_a_turn_is_over() -> None:
    """Others find it, and who knows all its targets needs none."""
    limit = ColdStartLimit(threading.Event())
    with ExitStack() as first, limit.admit(MAXIMUM // 2):
        first.enter_context(limit.admit(MAXIMUM // 2 - 1))
        with in_thread(limit, 2) as began:
            with limit.admit(0), limit.admit(1):
                assert not began.wait(0.3)
            first.close()
            assert began.wait(WITHIN_S)


def test_a_batch_larger_than_all_the_room_has_its_turn_alone() -> None:
    """It would wait for ever."""
    limit = ColdStartLimit(threading.Event())
    with ExitStack() as first:
        first.enter_context(limit.admit(MAXIMUM + 1))
        with in_thread(limit, 1) as began:
            assert not began.wait(0.3)
            first.close()
            assert began.wait(WITHIN_S)


def test_nobody_waits_in_a_worker_that_stops() -> None:
    """The batch is handed back then, which takes no time."""
    stopping = threading.Event()
    limit = ColdStartLimit(stopping)
    with limit.admit(MAXIMUM), in_thread(limit, 1) as began:
        stopping.set()
        assert began.wait(WITHIN_S)
