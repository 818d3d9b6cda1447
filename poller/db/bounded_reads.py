"""Reads of SQL that a poll waits for, but not for long: each runs in a thread of its own.

A statement may wait for a lock, a connection or a silent server. The poll then goes on without it,
and the result is used when it comes.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import TypeVar

from poller import errors

log = logging.getLogger(__name__)

T = TypeVar("T")

#: How long a batch waits that has other targets to poll. SQL that is well takes milliseconds.
PATIENCE_S = 1.0
#: How long a batch waits that has nothing else to do.
COLD_PATIENCE_S = 5.0
#: How long a batch waits while another read is overdue.
HASTY_S = 0.25
#: With this many reads overdue no other is started: each of them holds a connection.
MAX_OVERDUE = 4


class BoundedReads:
    """The reads of a worker process, safe for threads.

    A lock costs a few batches one wait each; the others go on without what they cannot read.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.overdue = 0  # reads that their batch did not wait for

    def read(self, query: Callable[[], T], patience_s: float, use_late: Callable[[T], object]) -> T:
        """Return the result of a query. Raises what the query raises, and StoreUnavailable if it
        takes longer than the patience, or if several others are overdue.

        A result that comes later goes to `use_late`, in another thread.
        """
        if self.overdue >= MAX_OVERDUE:
            raise errors.StoreUnavailable("the database has not answered earlier queries yet")
        if self.overdue:
            patience_s = min(patience_s, HASTY_S)
        future = _start(query)
        try:
            return future.result(patience_s)
        except TimeoutError:
            with self._lock:
                self.overdue += 1
            future.add_done_callback(partial(self._end_overdue, use_late))
            message = f"the database did not answer within {patience_s:g} s"
            raise errors.StoreUnavailable(message) from None

    def read_beside(self, query: Callable[[], T], done: Callable[[Future[T]], None]) -> None:
        """Run a query that is not waited for. `done` gets its future, in another thread."""
        _start(query).add_done_callback(done)

    def _end_overdue(self, use_late: Callable[[T], object], future: Future[T]) -> None:
        with self._lock:
            self.overdue -= 1
        error = future.exception()
        if error is None:
            use_late(future.result())
        else:
            log.warning("a query failed after its batch had gone on without it: %s", error)


def _start(query: Callable[[], T]) -> Future[T]:
    future: Future[T] = Future()

    def run() -> None:
        try:
            future.set_result(query())
        except BaseException as error:  # noqa: BLE001  door: the end of this thread; the caller gets it
            future.set_exception(error)

    # A daemon: a worker that ends does not wait for a lock.
    thread = threading.Thread(target=run, name="sql-read", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # the host has no room for another thread
        future.set_exception(errors.StoreUnavailable(f"the database was not asked: {error}"))
    return future
