"""The writers of a worker: one for the ledger, one for dead letters and one for every sink.

A poll waits a moment for its rows. Rows of a destination that is down are on disk before the poll
goes on.
"""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, TypeVar

from sqlalchemy.engine import Engine

from poller.db import answer_limit
from poller.db.record import dead_letter_rows, run_ledger
from poller.domain.failures.dead_letter import Letter
from poller.domain.record.run import Run
from poller.domain.record.sink_report import SinkReport
from poller.settings import Settings
from poller.sinks.api import Sample
from poller.sinks.made_sink import MadeSink
from poller.workers.results.destination_writer import DestinationWriter, QueuedRound
from poller.workers.results.sink_meter import SinkMeter
from poller.workers.results.spool import Spool
from poller.workers.results.spool_codec import Codec, DeadLetterCodec, RunCodec, SampleCodec
from poller.workers.results.spool_dir import SpoolDirectory
from poller.workers.results.spool_quota import SpoolQuota

#: A poll waits this many times longer for a destination that is slow but writes.
SLOW_TIMES = 4

T = TypeVar("T")


class Writers:
    """The writers of all destinations of a worker process, safe for threads."""

    def __init__(
        self, engine: Engine, sinks: Sequence[MadeSink], settings: Settings, runner: str
    ) -> None:
        self._engine = engine
        self._patience_s = settings.spool_patience_s
        self._directory = SpoolDirectory(settings.home, runner)
        self._quota = SpoolQuota(settings.spool_mb * 1024 * 1024)
        self._ledger: DestinationWriter[Run] = self._writer("ledger", RunCodec(), self._write_runs)
        self._letters: DestinationWriter[Letter] = self._writer(
            "letters", DeadLetterCodec(), self._write_letters
        )
        self._sinks = [self._sink_writer(made) for made in sinks]
        pairs = zip(sinks, self._sinks, strict=True)
        self._meters = [SinkMeter(made, writer) for made, writer in pairs]
        self._take_ends = [made.takes_ends for made in sinks]  # in the order of `_sinks`
        self._start_lock = threading.Lock()
        self._is_started = False

    def _writer(
        self, name: str, codec: Codec[T], write: Callable[[Sequence[T]], None]
    ) -> DestinationWriter[T]:
        return DestinationWriter(write, self._spool(name, codec))

    def _sink_writer(self, made: MadeSink) -> DestinationWriter[Sample]:
        spool = self._spool(f"sink-{made.name}", SampleCodec(), is_sink=True)
        write = made.sink.write if made.takes_ends else partial(_write_polls, made)
        return DestinationWriter(write, spool, made.write_polls, _count_samples)

    def _spool(self, name: str, codec: Codec[T], *, is_sink: bool = False) -> Spool[T]:
        find_directory = partial(self._directory.path_for, name)
        return Spool(name, codec, find_directory, self._quota, is_sink)

    def _write_runs(self, rows: Sequence[Run]) -> None:
        with answer_limit.answers_within(answer_limit.WRITE_ANSWER_S):
            run_ledger.write(self._engine, rows)

    def _write_letters(self, letters: Sequence[Letter]) -> None:
        with answer_limit.answers_within(answer_limit.WRITE_ANSWER_S):
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

    @property
    def take_ends(self) -> bool:
        """Whether any sink wants to know when series end."""
        return any(self._take_ends)

    def write_readings(self, samples: Sequence[Sample], ends: Sequence[Sample] = ()) -> int:
        """Write samples to every sink, and ends of series to the sinks that take them; to their
        spools while they are down. Returns the milliseconds this took.

        Neither this method nor `write_rows` raises for an error of a destination.
        """
        started_mono = time.monotonic()
        with_ends = [*ends, *samples] if ends else samples
        parts = []
        for sink, takes_ends_too in zip(self._sinks, self._take_ends, strict=True):
            items = with_ends if takes_ends_too else samples
            if items:
                parts.append((sink, items))
        if parts:
            self._write(parts)
        elapsed_s = time.monotonic() - started_mono
        return round(elapsed_s * 1000)

    def write_rows(self, rows: Sequence[Run], letters: Sequence[Letter] = ()) -> None:
        """Write runs to the ledger and dead letters, or to their spools.

        Comes after the readings: a run has the time that writing its readings took.
        """
        parts: list[tuple[DestinationWriter[Any], Sequence[Any]]] = [(self._ledger, rows)]
        if letters:
            parts.append((self._letters, letters))
        self._write(parts)

    def _write(self, parts: Sequence[tuple[DestinationWriter[Any], Sequence[Any]]]) -> None:
        if not self._is_started:
            self.start()
        until_mono = time.monotonic() + self._patience_s

        queued: list[tuple[DestinationWriter[Any], QueuedRound[Any]]] = []
        for writer, items in parts:
            round_ = writer.enqueue(items)
            if round_ is not None:
                queued.append((writer, round_))

        for writer, round_ in queued:
            self._wait(writer, round_, until_mono)

    def _wait(
        self, writer: DestinationWriter[Any], queued: QueuedRound[Any], until_mono: float
    ) -> None:
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
    def outage(self) -> str:
        """Why the ledger or dead letters take no rows now; "" when they do. Sinks have reports."""
        return self._ledger.outage or self._letters.outage

    def sink_reports(self, now_ms: int) -> list[SinkReport]:
        """The state of every sink in this process. `now_ms` is now on the clock of readers."""
        return [meter.report(now_ms) for meter in self._meters]

    @property
    def dropped(self) -> int:
        """Polls dropped by all spools since this process started, counted like `waiting`."""
        return sum(writer.spool.dropped for writer in self._all)

    @property
    def _all(self) -> list[DestinationWriter[Any]]:
        return [self._ledger, self._letters, *self._sinks]


def _count_samples(polls: Sequence[Sample]) -> int:
    return sum(len(poll.readings.values) for poll in polls)


def _write_polls(made: MadeSink, samples: Sequence[Sample]) -> None:
    """Write without ends: they may wait in the spool of a sink that was of another kind before."""
    polls = [sample for sample in samples if not sample.is_end]
    if polls:
        made.sink.write(polls)
