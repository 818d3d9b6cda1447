"""Only a few batches of targets that nobody knows yet are polled at a time."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

from poller.workers.warming import TURNS, Warming

WITHIN_S = 10.0


@contextmanager
def in_thread(warming: Warming) -> Iterator[threading.Event]:
    """A batch of unknown targets in a thread of its own; the event says that it has its turn."""
    began, end = threading.Event(), threading.Event()

    def batch() -> None:
        with warming.turn(64, 64):
            began.set()
            end.wait(WITHIN_S)

    thread = threading.Thread(target=batch)
    thread.start()
    try:
        yield began
    finally:
        end.set()
        thread.join(WITHIN_S)


def test_the_next_one_waits_until_a_turn_is_over() -> None:
    """The others do not: they know their targets."""
    warming = Warming(threading.Event())
    with ExitStack() as turns:
        for _ in range(TURNS):
            turns.enter_context(warming.turn(64, 64))
        with in_thread(warming) as began:
            with warming.turn(0, 64), warming.turn(16, 64):
                assert not began.wait(0.3)
            turns.close()
            assert began.wait(WITHIN_S)


def test_nobody_waits_in_a_worker_that_stops() -> None:
    """The batch is handed back then, which takes no time."""
    stopping = threading.Event()
    warming = Warming(stopping)
    with ExitStack() as turns:
        for _ in range(TURNS):
            turns.enter_context(warming.turn(64, 64))
        with in_thread(warming) as began:
            stopping.set()
            assert began.wait(WITHIN_S)
    with warming.turn(64, 64), warming.turn(64, 64):  # what was not taken was not given back either
        pass
