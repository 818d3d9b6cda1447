"""The writers of a worker: ledger, dead letters and every sink have a queue and a thread each.

A poll waits a moment for its rows. A destination that does not take them in time is down: its rows
go to its spool, in order, before the poll goes on, and are written when the destination is up
again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from typing import Any, Generic, TypeVar

from sqlalchemy.engine import Engine

from poller import errors, plugins
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.failures import outcome
from poller.domain.failures.dead_letter import Letter
from poller.domain.record.run import Run
from poller.observability import logs
from poller.settings import Settings
from poller.sinks.api import Sample, Sink
from poller.workers.results.spool import Spool, SpooledRounds, SpoolQuota
from poller.workers.results.spool_codec import Codec, DeadLetterCodec, RunCodec, SampleCodec
from poller.workers.results.spool_dir import SpoolDirectory

log = logs.get(__name__)

#: Polls that are written in one call, if that many wait: more of them need fewer transactions.
WRITE_POLLS = 1024
#: The pause between two attempts at a destination that is down.
RETRY_S = 1.0
#: A round that the destination refuses this often is set aside. An outage is no refusal.
MAX_REFUSALS = 3
#: An outage within this time after the last one is not logged.
LOG_INTERVAL_S = 5.0
#: A poll waits this many times longer for a destination that is slow but writes.
SLOW_TIMES = 4

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


class Outage:
    """Logs when a destination goes down, and when all rows that waited for it are written."""

    def __init__(self, store: str) -> None:
        self.late_polls = 0  # written after they had waited in the spool
        self._store = store
        self._down_mono: float | None = None
        self._logged_mono = -LOG_INTERVAL_S

    def mark_down(self, reason: str) -> None:
        if self._down_mono is not None:
            return

        now_mono = time.monotonic()
        self._down_mono = now_mono

        if now_mono >= self._logged_mono + LOG_INTERVAL_S:
            self._logged_mono = now_mono
            log.warning("store_down", store=self._store, reason=reason)

    def mark_up(self) -> None:
        """Log the rows that were late, also those that a dead worker left."""
        is_logged = self._down_mono is None or self._down_mono == self._logged_mono
        if self.late_polls and is_logged:
            down_s = time.monotonic() - self._down_mono if self._down_mono else 0.0
            log.info(
                "store_caught_up",
                store=self._store,
                polls=self.late_polls,
                seconds=round(down_s, 1),
            )
        self.late_polls = 0
        self._down_mono = None


class Writer(Generic[T]):
    """The writer of one destination. Its queue is empty while rounds wait in its spool."""

    def __init__(self, write: Callable[[Sequence[T]], None], spool: Spool[T]) -> None:
        self.spool = spool
        self._write = write
        self._queue: deque[QueuedRound[T]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._writing_queued = 0  # the oldest rounds of the queue that are being written
        self._taken: SpooledRounds[T] = SpooledRounds((), None)  # being written, if none is queued
        self._single_rounds = 0  # rounds that are written one by one
        self._refusals = 0
        self._retry_mono = 0.0
        self._wrote_mono = 0.0
        self._outage = Outage(spool.name)
        self._stopping = False
        name = f"write-{spool.name}"
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)

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
                self.spool.append(items)
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
            try:
                self._write(items)
            except BaseException as error:  # noqa: BLE001  door: a sink; this thread must go on
                self._on_failed(error)
            else:
                self._on_written(len(items))

    def _next_items(self) -> list[T] | None:
        """Wait for rows and return the oldest. None tells the thread to end."""
        with self._changed:
            while True:
                if not self.spool:
                    self._outage.mark_up()
                pause_s = self._retry_mono - time.monotonic()
                if self.spool and pause_s <= 0:
                    self._taken = self.spool.oldest(1 if self._single_rounds else WRITE_POLLS)
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
            if len(items) >= WRITE_POLLS:
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
        if isinstance(error, errors.PollerError):
            text = str(error)
        else:
            text = plugins.error_text(error)
        reason = outcome.clean(text)

        with self._changed:
            self._spill(reason)
            self._outage.mark_down(reason)
            self._retry_mono = time.monotonic() + RETRY_S
            if not isinstance(error, errors.StoreUnavailable | errors.ConfigError):
                self._on_refused(reason)
            self.spool.log_dropped()

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
            self.spool.append(queued.items)
            queued.mark_stored()
            if number == self._writing_queued:
                self._taken = self.spool.oldest(sys.maxsize)
        self._queue.clear()
        self._writing_queued = 0


class Writers:
    """The writers of all destinations of a worker process, safe for threads."""

    def __init__(
        self, engine: Engine, sinks: Sequence[Sink], settings: Settings, runner: str
    ) -> None:
        self._engine = engine
        self._patience_s = settings.spool_patience_s
        self._directory = SpoolDirectory(settings.home, runner)
        self._quota = SpoolQuota(settings.spool_mb * 1024 * 1024)
        self._ledger: Writer[Run] = self._writer("ledger", RunCodec(), self._write_runs)
        self._letters: Writer[Letter] = self._writer(
            "letters", DeadLetterCodec(), self._write_letters
        )
        self._sinks: list[Writer[Sample]] = [
            self._writer(f"sink-{sink.name}", SampleCodec(), sink.write) for sink in sinks
        ]
        self._start_lock = threading.Lock()
        self._is_started = False

    def _writer(
        self, name: str, codec: Codec[T], write: Callable[[Sequence[T]], None]
    ) -> Writer[T]:
        find_directory = partial(self._directory.path_for, name)
        spool = Spool(name, codec, find_directory, self._quota)
        return Writer(write, spool)

    def _write_runs(self, rows: Sequence[Run]) -> None:
        run_ledger.write(self._engine, rows)

    def _write_letters(self, letters: Sequence[Letter]) -> None:
        dead_letter_rows.write(self._engine, letters)

    def start(self) -> None:
        """Adopt the spools of dead workers and start the threads. A second call does nothing."""
        with self._start_lock:
            if self._is_started:
                return
            names = [writer.spool.name for writer in self._all]
            self._directory.adopt(names, self._quota.limit_bytes)
            for writer in self._all:
                writer.start()
            self._is_started = True

    def write_readings(self, samples: Sequence[Sample]) -> int:
        """Write samples to every sink, or to its spool. Returns the milliseconds this took.

        Neither this method nor `write_rows` raises for an error of a destination.
        """
        started_mono = time.monotonic()
        if samples:
            self._write([(sink, samples) for sink in self._sinks])
        elapsed_s = time.monotonic() - started_mono
        return round(elapsed_s * 1000)

    def write_rows(self, rows: Sequence[Run], letters: Sequence[Letter] = ()) -> None:
        """Write runs to the ledger and dead letters, or to their spools.

        Comes after the readings: a run has the time that writing its readings took.
        """
        parts: list[tuple[Writer[Any], Sequence[Any]]] = [(self._ledger, rows)]
        if letters:
            parts.append((self._letters, letters))
        self._write(parts)

    def _write(self, parts: Sequence[tuple[Writer[Any], Sequence[Any]]]) -> None:
        if not self._is_started:
            self.start()
        until_mono = time.monotonic() + self._patience_s

        queued: list[tuple[Writer[Any], QueuedRound[Any]]] = []
        for writer, items in parts:
            round_ = writer.enqueue(items)
            if round_ is not None:
                queued.append((writer, round_))

        for writer, round_ in queued:
            self._wait(writer, round_, until_mono)

    def _wait(self, writer: Writer[Any], queued: QueuedRound[Any], until_mono: float) -> None:
        """Wait for a round; longer, but not for ever, while its destination writes others."""
        last_mono = until_mono + SLOW_TIMES * self._patience_s

        while not queued.wait(until_mono):
            since_mono = float(sys.maxsize)
            if until_mono < last_mono:
                since_mono = until_mono - self._patience_s
            if writer.spill_overdue(queued, since_mono):
                return
            until_mono = min(last_mono, time.monotonic() + self._patience_s)

    def close(self, within_s: float) -> None:
        """Give the writers some time to finish. Rows that are not written then stay on disk."""
        until_mono = time.monotonic() + within_s

        for writer in self._all:
            writer.stop()
        for writer in self._all:
            writer.close(until_mono)

    @property
    def waiting(self) -> int:
        """Polls in all spools. A poll counts once for each destination it waits for."""
        return sum(writer.spool.polls for writer in self._all)

    @property
    def dropped(self) -> int:
        """Polls dropped by all spools since this process started, counted like `waiting`."""
        return sum(writer.spool.dropped for writer in self._all)

    @property
    def _all(self) -> list[Writer[Any]]:
        return [self._ledger, self._letters, *self._sinks]
