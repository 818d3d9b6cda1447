"""Memory that a prefork worker shares with its children: counts, and the shutdown phase.

The worker's heartbeat has the counts of all its processes. Other pools have no children.
"""

from __future__ import annotations

import enum
import mmap
import time
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING

from billiard.process import current_process

from poller.metering import process_usage
from poller.workers.process import process_limits
from poller.workers.process.child_reports import ChildReports

if TYPE_CHECKING:
    from poller.workers.batch.worker_poller import Poller
    from poller.workers.jobs.job_runner import JobRunner

REPORT_S = 0.25
SINKS_REPORT_S = 2.0
_CELL_BYTES = 8


class Phase(enum.IntEnum):
    """The phase of the worker, which its children follow."""

    POLLING = 0
    STOPPING = 1  # finish running batches without retries, and running jobs
    DRAINED = 2  # cut off running batches, cancel running jobs


@dataclass(frozen=True, slots=True)
class ProcessCounts:
    """Counts of one process, or the sum of several."""

    polls: int = 0
    in_flight: int = 0
    jobs: int = 0  # that run
    rss_bytes: int = 0
    spool_waiting: int = 0
    spool_dropped: int = 0
    secret_hits: int = 0
    secret_misses: int = 0

    def __add__(self, other: ProcessCounts) -> ProcessCounts:
        return ProcessCounts(
            polls=self.polls + other.polls,
            in_flight=self.in_flight + other.in_flight,
            jobs=self.jobs + other.jobs,
            rss_bytes=self.rss_bytes + other.rss_bytes,
            spool_waiting=self.spool_waiting + other.spool_waiting,
            spool_dropped=self.spool_dropped + other.spool_dropped,
            secret_hits=self.secret_hits + other.secret_hits,
            secret_misses=self.secret_misses + other.secret_misses,
        )


_ROW_CELLS = len(fields(ProcessCounts))


def process_counts(poller: Poller, jobs: JobRunner) -> ProcessCounts:
    """Return the counts of this process."""
    return ProcessCounts(
        polls=poller.polls,
        in_flight=poller.in_flight,
        jobs=jobs.running,
        rss_bytes=process_usage.resident_bytes(),
        spool_waiting=poller.writers.waiting,
        spool_dropped=poller.writers.dropped,
        secret_hits=poller.credentials.hits,
        secret_misses=poller.credentials.misses,
    )


class PreforkChildren:
    """Shared memory, created before the first fork.

    Each child has a row, which its successor inherits.
    """

    def __init__(self, max_children: int) -> None:
        self._max_children = max_children
        cells = 1 + max_children * _ROW_CELLS  # the phase, and a row for each child
        page = mmap.mmap(-1, _CELL_BYTES * cells)
        self._cells = memoryview(page).cast("q")
        self.sink_reports = ChildReports(max_children)

    @property
    def phase(self) -> Phase:
        return Phase(self._cells[0])

    def set_phase(self, phase: Phase) -> None:
        self._cells[0] = phase

    def total(self) -> ProcessCounts:
        """Return the sum over all children."""
        total = ProcessCounts()
        for row in range(self._max_children):
            total += self.read(row)
        return total

    def read(self, row: int) -> ProcessCounts:
        """Return the counts in a child's row."""
        first = 1 + row * _ROW_CELLS
        end = first + _ROW_CELLS
        return ProcessCounts(*self._cells[first:end])

    def write(self, row: int, counts: ProcessCounts, inherited: ProcessCounts) -> None:
        """Write a child's row. Its counters continue those of its predecessor."""
        values = (
            inherited.polls + counts.polls,
            counts.in_flight,
            counts.jobs,
            counts.rss_bytes,
            counts.spool_waiting,
            inherited.spool_dropped + counts.spool_dropped,
            inherited.secret_hits + counts.secret_hits,
            inherited.secret_misses + counts.secret_misses,
        )
        first = 1 + row * _ROW_CELLS
        for offset, value in enumerate(values):
            self._cells[first + offset] = value

    def row(self) -> int:
        """Return the row of this child. Its successor has the same."""
        return int(getattr(current_process(), "index", 0)) % self._max_children

    def follow_worker(self, poller: Poller, jobs: JobRunner) -> None:
        """In a child's thread, for ever: report its counts and follow the worker's phase."""
        row = self.row()
        inherited = self.read(row)
        followed = Phase.POLLING
        reported_mono = 0.0
        garbage = process_limits.FailureGarbage()
        while True:
            self.write(row, process_counts(poller, jobs), inherited)
            if time.monotonic() >= reported_mono + SINKS_REPORT_S:
                reported_mono = time.monotonic()
                now_ms = time.time_ns() // 1_000_000
                self.sink_reports.write(row, poller.writers.sink_reports(now_ms))
            phase = self.phase
            if phase is not followed:
                followed = phase
                poller.stop_retrying()
                jobs.stop()
                if phase is Phase.DRAINED:
                    jobs.drain()
                    poller.drain()
            garbage.collect_if_due()
            time.sleep(REPORT_S)
