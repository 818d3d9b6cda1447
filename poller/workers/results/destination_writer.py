"""The writer of one destination: a queue, a thread and a spool.

A round that the destination does not take in time goes to the spool, in order, and is written when
the destination is up again.
"""

from __future__ import annotations

import random
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from itertools import chain
from typing import Generic, TypeVar

from poller.domain.failures import delivery_backoff
from poller.metering import process_metrics
from poller.sinks.api import WRITE_POLLS
from poller.workers.results.delivery_record import DeliveryRecord, is_refusal
from poller.workers.results.outage_log import OutageLog
from poller.workers.results.spool import Spool, SpooledRounds

#: The pause before a refused round is written again.
REFUSED_PAUSE_S = 1.0
#: A round that the destination refuses this often is set aside. An outage is no refusal.
MAX_REFUSALS = 3
#: The longest wait for the lock of a writer whose disk is slow.
LOCK_S = 0.5

T = TypeVar("T")


class QueuedRound(Generic[T]):
    """A round in the queue of a writer."""

    __slots__ = ("_pending", "items")

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items

        self._pending = threading.Lock()  # the cheapest object to wait for
        self._pending.acquire()

    def mark_stored(self) -> None:
        """Wake the poll: the round is written, or on disk."""
        self._pending.release()

    def wait(self, until_mono: float) -> bool:
        """Wait until the round is stored. Returns False if it is not stored in time."""
        timeout_s = max(0.0, until_mono - time.monotonic())
        return self._pending.acquire(timeout=timeout_s)


class DestinationWriter(Generic[T]):
    """The writer of one destination. Its queue is empty while rounds wait in its spool."""

    def __init__(
        self,
        write: Callable[[Sequence[T]], None],
        spool: Spool[T],
        write_polls: int = WRITE_POLLS,
        count_samples: Callable[[Sequence[T]], int] = len,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self.spool = spool
        self.record = DeliveryRecord()
        self._write = write
        self._count_samples = count_samples
        self._chance = chance
        self._write_polls = write_polls  # of one call: more of them need fewer transactions
        self._queue: deque[QueuedRound[T]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._writing_queued = 0  # the oldest rounds of the queue that are being written
        self._taken: SpooledRounds[T] = SpooledRounds((), None)  # being written, if none is queued
        self._single_rounds = 0  # rounds that are written one by one
        self._refusals = 0
        self._retry_mono = 0.0
        self._wrote_mono = 0.0
        self._outage = OutageLog(spool.name)
        self._stopping = False
        name = f"write-{spool.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

    @property
    def outage(self) -> str:
        """Why the destination takes no rows now; "" when it writes."""
        return self._outage.reason

    def start(self) -> None:
        """Open the spool and start the thread."""
        with self._changed:
            self.spool.open()
        self._thread.start()

    def enqueue(self, items: Sequence[T]) -> QueuedRound[T] | None:
        """Queue a round, or append it to a spool that is not empty.

        Returns None if it is on disk.
        """
        with self._changed:
            if self.spool:
                self._append_to_spool(items)
                return None
            queued = QueuedRound(items)
            self._queue.append(queued)
            self._changed.notify()
            return queued

    def spill_overdue(self, queued: QueuedRound[T], since_mono: float) -> bool:
        """Move the whole queue to disk if a round waits too long, so that no other poll waits.

        Returns False, and moves nothing, if the destination wrote since then: it is only slow.
        """
        with self._changed:
            if queued not in self._queue:
                return True
            if self._wrote_mono > since_mono:
                return False
            self._spill("no answer in time")
            return True

    def oldest_round(self) -> Sequence[T]:
        """The oldest items that are not stored yet; none if a slow disk holds the lock."""
        if not self._changed.acquire(timeout=LOCK_S):
            return ()
        try:
            if self.spool:
                rounds = self.spool.oldest(1).rounds
                return rounds[0] if rounds else ()
            return self._queue[0].items if self._queue else ()
        finally:
            self._changed.release()

    def stop(self) -> None:
        """Let the thread write until the first error, then end. `close` waits for that."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def close(self, until_mono: float) -> None:
        """Wait for the thread, and leave the rest of the queue on disk."""
        if self._thread.is_alive():
            timeout_s = max(0.0, until_mono - time.monotonic())
            self._thread.join(timeout_s)

        with self._changed:
            self._spill("stopping")
            self.spool.close()

    def _run(self) -> None:
        while True:
            items = self._next_items()
            if items is None:
                return
            self.record.call_began()
            try:
                with process_metrics.write_seconds.timed(self.spool.name):
                    self._write(items)
            except BaseException as error:  # noqa: BLE001  door: a sink; this thread must go on
                self._count("failed", len(items))
                self._on_failed(error)
            else:
                self._count("ok", len(items))
                self.record.written(len(items), self._count_samples(items))
                self._on_written(len(items))
            finally:
                self.record.call_ended()

    def _count(self, result: str, polls: int) -> None:
        process_metrics.writes.add(self.spool.name, result, by=polls)

    def _next_items(self) -> list[T] | None:
        """Wait for rows and return the oldest. The thread ends after None."""
        with self._changed:
            while True:
                if not self.spool:
                    self._outage.mark_up()

                pause_s = self._retry_mono - time.monotonic()
                if self.spool and pause_s <= 0:
                    self._taken = self.spool.oldest(1 if self._single_rounds else self._write_polls)
                    if self._taken.rounds:
                        return list(chain.from_iterable(self._taken.rounds))
                elif self._queue:
                    return self._take_from_queue()
                elif self._stopping:
                    return None
                else:
                    self._changed.wait(pause_s if self.spool else None)

    def _take_from_queue(self) -> list[T]:
        items: list[T] = []
        for queued in self._queue:
            items += queued.items
            self._writing_queued += 1
            if len(items) >= self._write_polls:
                break
        return items

    def _on_written(self, polls: int) -> None:
        with self._changed:
            self._wrote_mono = time.monotonic()
            self._refusals = 0
            self._single_rounds = max(0, self._single_rounds - 1)
            if not self._writing_queued:
                self.spool.remove(self._taken)
                self._outage.late_polls += polls
                return

            for _ in range(self._writing_queued):
                self._queue.popleft().mark_stored()
            self._writing_queued = 0

    def _on_failed(self, error: BaseException) -> None:
        reason = self.record.failed(error)
        with self._changed:
            self._spill(reason)
            self._outage.mark_down(reason)
            if is_refusal(error):
                self._pause(REFUSED_PAUSE_S)
                self._on_refused(reason)
            else:
                asked_s = getattr(error, "retry_after_s", None)
                failures = self.record.failures
                self._pause(delivery_backoff.wait_s(failures, asked_s, self._chance()))
            self.spool.drop_excess()

    def _pause(self, seconds: float) -> None:
        self._retry_mono = self.record.retry_mono = time.monotonic() + seconds

    def _on_refused(self, reason: str) -> None:
        """Find the refused round by writing rounds one by one, and set it aside."""
        rounds = len(self._taken.rounds)
        if rounds > 1:
            self._single_rounds = rounds
            self._retry_mono = 0.0
            return

        self._refusals += 1
        if self._refusals >= MAX_REFUSALS:
            self.spool.refuse(self._taken, reason)
            self._refusals = 0
            self._retry_mono = 0.0

    def _spill(self, reason: str) -> None:
        """Move the queue to disk, in order.

        Rounds that are being written now are removed there later.
        """
        if not self._queue:
            return
        self._outage.mark_down(reason)
        for number, queued in enumerate(self._queue, 1):
            self._append_to_spool(queued.items)
            queued.mark_stored()
            if number == self._writing_queued:
                self._taken = self.spool.oldest(sys.maxsize)
        self._queue.clear()
        self._writing_queued = 0

    def _append_to_spool(self, items: Sequence[T]) -> None:
        self.spool.append(items)
        self._count("spooled", len(items))
