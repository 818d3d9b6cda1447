"""Where results go: the ledger and every sink, each with a queue and a thread of its own.

A poll waits a moment for its rows. A destination that does not take them in time, or at all, is down: what is
meant for it goes to its spool, in order, before the poll goes on, and is written when it answers again.
"""

from __future__ import annotations

import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
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
from poller.workers.results import spool_codec
from poller.workers.results.spool import Room, Spool, Taken
from poller.workers.results.spool_dir import SpoolHome

log = logs.get(__name__)

#: Polls that are written together, if so many wait: the more, the fewer transactions.
TOGETHER = 1024
#: Between two attempts at a destination that is down.
TRY_AGAIN_S = 1.0
#: A round that was refused so often for what it is, not for the state of the store, is set aside.
REFUSALS = 3
#: A store that comes and goes is not told of more often.
SAY_EVERY_S = 5.0
#: A poll waits for so many times its patience, if what was handed over before it is being written meanwhile.
SLOW_TIMES = 4

T = TypeVar("T")


class Handed(Generic[T]):
    """A round in the queue of a writer."""

    __slots__ = ("_unsettled", "items")

    def __init__(self, items: Sequence[T]) -> None:
        self.items = items
        self._unsettled = threading.Lock()  # the cheapest thing to wait for
        self._unsettled.acquire()

    def settle(self) -> None:
        """It is written, or on disk."""
        self._unsettled.release()

    def wait(self, until: float) -> bool:
        return self._unsettled.acquire(timeout=max(0.0, until - time.monotonic()))


class Writer(Generic[T]):
    """One destination. While anything waits in its spool the queue is empty: what comes goes behind."""

    def __init__(self, write: Callable[[Sequence[T]], None], spool: Spool[T]) -> None:
        self.spool = spool
        self._write = write
        self._queue: deque[Handed[T]] = deque()
        self._changed = threading.Condition(threading.Lock())
        self._queued = 0  # so many of the queue, the oldest, are being written; 0: `_taken` is
        self._taken: Taken[T] = Taken((), None)
        self._one_by_one = 0  # so many rounds, then together again
        self._refusals = 0
        self._try_at = 0.0
        self._wrote_at = 0.0
        self._outage = Outage(spool.name)
        self._stopping = False
        self._thread = threading.Thread(target=self._run, name=f"write-{spool.name}", daemon=True)

    def start(self) -> None:
        with self._changed:
            self.spool.open()
        self._thread.start()

    def hand_over(self, items: Sequence[T]) -> Handed[T] | None:
        """None when there is nothing to wait for: it is on disk already."""
        with self._changed:
            if self.spool:
                self.spool.append(items)
                return None
            handed = Handed(items)
            self._queue.append(handed)
            self._changed.notify()
            return handed

    def give_up(self, handed: Handed[T], since: float) -> bool:
        """It was not written in time. The whole queue goes to disk, so that nobody else has to wait.

        False if something was written since then: it is only slow, and more of the disk would not make it faster.
        """
        with self._changed:
            if handed in self._queue:
                if self._wrote_at > since:
                    return False
                self._spill("no answer in time")
            return True

    def stop(self) -> None:
        """Write what can be written, and end with the first thing that cannot; `close` waits for that."""
        with self._changed:
            self._stopping = True
            self._changed.notify()

    def close(self, until: float) -> None:
        if self._thread.is_alive():
            self._thread.join(max(0.0, until - time.monotonic()))
        with self._changed:
            self._spill("stopping")
            self.spool.close()

    def _run(self) -> None:
        while (items := self._next()) is not None:
            try:
                self._write(items)
            except BaseException as error:  # noqa: BLE001  a sink may be anyone's, and this thread must go on
                self._failed(error)
            else:
                self._written(len(items))

    def _next(self) -> list[T] | None:
        """What to write now, oldest first; waits for it. None: it is time to end."""
        with self._changed:
            while True:
                if not self.spool:
                    self._outage.ends()
                pause = self._try_at - time.monotonic()
                if self.spool and pause <= 0:
                    self._taken = self.spool.oldest(1 if self._one_by_one else TOGETHER)
                    if self._taken.rounds:
                        return list(chain.from_iterable(self._taken.rounds))
                elif self._queue:
                    return self._take_from_queue()
                elif self._stopping:
                    return None
                else:
                    self._changed.wait(pause if self.spool else None)

    def _take_from_queue(self) -> list[T]:
        items: list[T] = []
        for handed in self._queue:
            items += handed.items
            self._queued += 1
            if len(items) >= TOGETHER:
                break
        return items

    def _written(self, polls: int) -> None:
        with self._changed:
            self._wrote_at = time.monotonic()
            self._refusals = 0
            self._one_by_one = max(0, self._one_by_one - 1)
            if self._queued:
                for _ in range(self._queued):
                    self._queue.popleft().settle()
                self._queued = 0
            else:
                self.spool.forget(self._taken)
                self._outage.late += polls

    def _failed(self, error: BaseException) -> None:
        reason = outcome.clean(
            str(error) if isinstance(error, errors.PollerError) else plugins.error_text(error)
        )
        with self._changed:
            self._spill(reason)
            self._outage.begins(reason)
            self._try_at = time.monotonic() + TRY_AGAIN_S
            if not isinstance(error, errors.StoreUnavailable | errors.ConfigError):
                self._refused(reason)
            self.spool.say_what_was_dropped()

    def _refused(self, reason: str) -> None:
        """It is there, but does not want something. Find out which round that is, and go on without it."""
        if len(self._taken.rounds) > 1:
            self._one_by_one, self._try_at = len(self._taken.rounds), 0.0
            return
        self._refusals += 1
        if self._refusals >= REFUSALS:
            self.spool.refuse(self._taken, reason)
            self._refusals, self._try_at = 0, 0.0

    def _spill(self, reason: str) -> None:
        """The queue goes to disk, in order. If what is being written arrives after all, it is forgotten there."""
        if not self._queue:
            return
        self._outage.begins(reason)
        for number, handed in enumerate(self._queue, 1):
            self.spool.append(handed.items)
            handed.settle()
            if number == self._queued:
                self._taken = self.spool.oldest(sys.maxsize)
        self._queue.clear()
        self._queued = 0


class Outage:
    """Says when a destination goes down, and when all that waited for it is written."""

    def __init__(self, store: str) -> None:
        self.late = 0  # polls written that had to wait
        self._store = store
        self._began: float | None = None
        self._said_at = -SAY_EVERY_S

    def begins(self, reason: str) -> None:
        """Or goes on."""
        now = time.monotonic()
        if self._began is None:
            self._began = now
            if now >= self._said_at + SAY_EVERY_S:
                self._said_at = now
                log.warning("store_down", store=self._store, reason=reason)

    def ends(self) -> None:
        """Or there was none. What a dead worker left is told of, too."""
        if self.late and self._began in (None, self._said_at):
            seconds = round(time.monotonic() - self._began, 1) if self._began else 0.0
            log.info("store_caught_up", store=self._store, polls=self.late, seconds=seconds)
        self.late, self._began = 0, None


class Writers:
    """All destinations of a worker process. Called from many threads."""

    def __init__(
        self, engine: Engine, sinks: Sequence[Sink], settings: Settings, runner: str
    ) -> None:
        self._patience_s = settings.spool_patience_s
        self._home = SpoolHome(settings.home, runner)
        self._room = Room(settings.spool_mb * 1024 * 1024)
        self._ledger: Writer[Run] = Writer(
            lambda rows: run_ledger.write(engine, rows), self._spool("ledger", spool_codec.Runs())
        )
        self._letters: Writer[Letter] = Writer(
            lambda rows: dead_letter_rows.write(engine, rows),
            self._spool("letters", spool_codec.Letters()),
        )
        self._sinks = [
            Writer(sink.write, self._spool(f"sink-{sink.name}", spool_codec.Samples()))
            for sink in sinks
        ]
        self._guard = threading.Lock()
        self._started = False

    def start(self) -> None:
        """Adopt what dead workers left, and begin to write. Called again, it does nothing."""
        with self._guard:
            if not self._started:
                self._home.adopt(
                    [writer.spool.name for writer in self._writers], self._room.limit_bytes
                )
                for writer in self._writers:
                    writer.start()
                self._started = True

    def write_readings(self, samples: Sequence[Sample]) -> int:
        """To every sink: when this returns, they are written or on disk. Returns how many ms that took.

        Never raises for what a destination does; nor does `write_rows`.
        """
        began = time.monotonic()
        if samples:
            self._hand_over([(sink, samples) for sink in self._sinks])
        return round((time.monotonic() - began) * 1000)

    def write_rows(self, rows: Sequence[Run], letters: Sequence[Letter] = ()) -> None:
        """To the ledger, and dead letters to theirs. After the readings: a row says how long these took."""
        parts: list[tuple[Writer[Any], Sequence[Any]]] = [(self._ledger, rows)]
        self._hand_over([*parts, (self._letters, letters)] if letters else parts)

    def _hand_over(self, parts: Sequence[tuple[Writer[Any], Sequence[Any]]]) -> None:
        if not self._started:
            self.start()
        until = time.monotonic() + self._patience_s
        handed = [(writer, writer.hand_over(items)) for writer, items in parts]
        for writer, item in handed:
            if item is not None:
                self._wait(writer, item, until)

    def _wait(self, writer: Writer[Any], item: Handed[Any], until: float) -> None:
        last = until + SLOW_TIMES * self._patience_s
        while not item.wait(until):
            since = until - self._patience_s if until < last else sys.maxsize
            if writer.give_up(item, since):
                return
            until = min(last, time.monotonic() + self._patience_s)

    def close(self, within_s: float) -> None:
        """Give the writers some time; what they do not get rid of stays on disk."""
        until = time.monotonic() + within_s
        for writer in self._writers:
            writer.stop()
        for writer in self._writers:
            writer.close(until)

    @property
    def waiting(self) -> int:
        """Polls on disk, counted once for each destination they wait for."""
        return sum(writer.spool.polls for writer in self._writers)

    @property
    def dropped(self) -> int:
        """Polls that never got there, counted likewise, since this process started."""
        return sum(writer.spool.dropped for writer in self._writers)

    @property
    def _writers(self) -> list[Writer[Any]]:
        return [self._ledger, self._letters, *self._sinks]

    def _spool(self, name: str, codec: spool_codec.Codec[T]) -> Spool[T]:
        return Spool(name, codec, lambda: self._home.place(name), self._room)
