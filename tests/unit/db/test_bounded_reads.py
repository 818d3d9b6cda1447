"""A poll waits for SQL, but not for long."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue

import pytest

from poller import errors
from poller.db import bounded_reads
from poller.db.bounded_reads import MAX_OVERDUE, BoundedReads

SOON_S = 0.01
WITHIN_S = 30.0


@pytest.fixture
def lock() -> Iterator[threading.Event]:
    """A lock that queries wait for; it is released after the test."""
    made = threading.Event()
    yield made
    made.set()


def behind(lock: threading.Event) -> Callable[[], str]:
    """A query that waits for the lock."""

    def query() -> str:
        assert lock.wait(WITHIN_S)
        return "late"

    return query


def test_a_host_without_room_for_a_thread_is_a_database_that_was_not_asked(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A refresh beside the polls ends with the error, and can be tried again."""

    def full(_thread: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr(threading.Thread, "start", full)
    reads = BoundedReads()
    ended: list[BaseException | None] = []
    reads.read_beside(lambda: "rows", lambda future: ended.append(future.exception()))
    assert isinstance(ended[0], errors.StoreUnavailable)
    with pytest.raises(errors.StoreUnavailable, match="was not asked"):
        reads.read(lambda: "rows", WITHIN_S, ended.append)


def test_a_quick_result_is_returned_and_an_error_is_raised() -> None:
    reads = BoundedReads()
    late: list[str] = []
    assert reads.read(lambda: "rows", WITHIN_S, late.append) == "rows"
    with pytest.raises(ZeroDivisionError):
        reads.read(lambda: str(1 // 0), WITHIN_S, late.append)
    assert (late, reads.overdue) == ([], 0)


def test_a_late_result_is_used_when_it_comes(lock: threading.Event) -> None:
    """The caller has gone on without it."""
    reads = BoundedReads()
    late: SimpleQueue[str] = SimpleQueue()
    with pytest.raises(errors.StoreUnavailable, match=r"within 0\.01 s"):
        reads.read(behind(lock), SOON_S, late.put)
    assert (late.empty(), reads.overdue) == (True, 1)
    lock.set()
    assert late.get(timeout=WITHIN_S) == "late"
    assert reads.overdue == 0


def test_a_few_overdue_reads_are_enough(
    lock: threading.Event, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While one is overdue the next ones wait less, and beyond the limit none is started."""
    monkeypatch.setattr(bounded_reads, "HASTY_S", SOON_S)
    reads = BoundedReads()
    started: list[int] = []
    for patience_s in (SOON_S, *[WITHIN_S] * (MAX_OVERDUE - 1)):
        with pytest.raises(errors.StoreUnavailable):
            reads.read(behind(lock), patience_s, print)
    with pytest.raises(errors.StoreUnavailable):
        reads.read(lambda: started.append(1), WITHIN_S, print)
    assert (reads.overdue, started) == (MAX_OVERDUE, [])


def test_one_stuck_connection_does_not_stop_the_others(lock: threading.Event) -> None:
    reads = BoundedReads()
    with pytest.raises(errors.StoreUnavailable):
        reads.read(behind(lock), SOON_S, print)
    assert reads.read(lambda: "rows", WITHIN_S, print) == "rows"
