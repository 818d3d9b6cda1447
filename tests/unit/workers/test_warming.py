"""Only so many targets that nobody knows yet are polled at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from poller.workers.batch.cold_start import MOST, Warming

WITHIN_S = 10.0


@contextmanager
def in_thread(warming: Warming, unknown: int) -> Iterator[threading.Event]:
    """A batch of unknown targets in a thread of its own; the event says that it has its turn."""
    began, end = threading.Event(), threading.Event()

    def batch() -> None:
        with warming.turn(unknown):
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
    warming = Warming(threading.Event())
    with ExitStack() as first, warming.turn(MOST // 2):
        first.enter_context(warming.turn(MOST // 2 - 1))
        with in_thread(warming, 2) as began:
            with warming.turn(0), warming.turn(1):
                assert not began.wait(0.3)
            first.close()
            assert began.wait(WITHIN_S)


def test_a_batch_larger_than_all_the_room_has_its_turn_alone() -> None:
    """It would wait for ever."""
    warming = Warming(threading.Event())
    with ExitStack() as first:
        first.enter_context(warming.turn(MOST + 1))
        with in_thread(warming, 1) as began:
            assert not began.wait(0.3)
            first.close()
            assert began.wait(WITHIN_S)


def test_nobody_waits_in_a_worker_that_stops() -> None:
    """The batch is handed back then, which takes no time."""
    stopping = threading.Event()
    warming = Warming(stopping)
    with warming.turn(MOST), in_thread(warming, 1) as began:
        stopping.set()
        assert began.wait(WITHIN_S)
