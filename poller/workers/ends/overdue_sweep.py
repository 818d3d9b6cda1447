"""Ends of series whose target is polled no more: removed, disabled, left alone, or renamed and
polled elsewhere.

Every few seconds the board is asked about the targets that this worker polled last and that are
overdue. Most of them were polled by another worker since, and are forgotten.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping

from sqlalchemy.engine import Engine

from poller import errors
from poller.db.inventory import inventory_feed
from poller.domain.batched import batched
from poller.domain.metrics import series_ends
from poller.domain.metrics.series_ends import LastSent, SeriesEnd
from poller.observability import logs
from poller.state.board.board_reader import BoardReader
from poller.state.board.board_values import Standings
from poller.workers.ends.end_samples import end_samples
from poller.workers.ends.sent_readings import SentReadings
from poller.workers.ends.target_labels import TargetLabels
from poller.workers.results.writers import Writers

log = logs.get(__name__)

SWEEP_S = 10.0
#: Targets of one call to Redis, and of one round of ends.
CHUNK = 500


class OverdueSweep:
    """One per worker process, with a thread that ends when the worker stops.

    The targets of a worker that stops live on elsewhere: nothing is ended then.
    """

    def __init__(
        self,
        sent: SentReadings,
        labels: TargetLabels,
        board: BoardReader,
        engine: Engine,
        writers: Writers,
        stopping: threading.Event,
    ) -> None:
        self._sent = sent
        self._labels = labels
        self._board = board
        self._engine = engine
        self._writers = writers
        self._stopping = stopping
        self._start_lock = threading.Lock()
        self._is_started = False

    def start(self) -> None:
        """Start the thread, in the process that polls. A second call does nothing."""
        with self._start_lock:
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._run, name="series-ends", daemon=True).start()

    def _run(self) -> None:
        while not self._stopping.wait(SWEEP_S):
            try:
                self.sweep(time.monotonic())
            except errors.StoreError as error:
                log.warning("ends_not_swept", error=str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("ends_sweep_broke")

    def sweep(self, now_mono: float) -> None:
        """Look at all overdue targets once. Raises StoreError."""
        overdue = self._sent.overdue(now_mono)
        for chunk in batched(overdue.items(), CHUNK):
            self._sweep_chunk(dict(chunk))

    def _sweep_chunk(self, overdue: Mapping[int, LastSent]) -> None:
        standings = self._board.standings(list(overdue))
        if standings is None or self._stopping.is_set():
            return
        waiting = {
            target_id
            for target_id, last in overdue.items()
            if series_ends.is_waiting(last, standings.by_target[target_id])
        }
        waiting -= self._board.left_alone(list(waiting), standings.now_ms)
        settled = {
            target_id: last for target_id, last in overdue.items() if target_id not in waiting
        }
        renamed = self._renamed(settled, standings)
        ends: dict[int, SeriesEnd] = {}
        for target_id, last in settled.items():
            end = series_ends.overdue_end(
                last,
                standings.by_target[target_id],
                standings.now_ms,
                is_renamed=target_id in renamed,
            )
            if end is not None:
                ends[target_id] = end
        forgotten = self._sent.forget(settled)
        due = [end for target_id, end in ends.items() if target_id in forgotten]
        if due:
            self._writers.write_readings((), end_samples(due))

    def _renamed(self, settled: Mapping[int, LastSent], standings: Standings) -> set[int]:
        """Return the edited targets whose labels changed. Raises StoreError."""
        edited = [
            target_id
            for target_id, last in settled.items()
            if (standings.by_target[target_id].version or 0) > last.target.version
        ]
        if not edited:
            return set()
        targets = inventory_feed.poll_targets(self._engine, edited)
        return {
            target_id
            for target_id, target in targets.items()
            if self._labels.differ(settled[target_id].target, target)
        }
