"""Counts of the runs of a job since the board was made: outcomes, durations, lateness."""

from __future__ import annotations

import enum
from bisect import bisect_left
from collections import Counter
from dataclasses import dataclass, field

from poller.domain.jobs.job_run import FailureCode

#: Upper edges of the buckets of a duration, in seconds. One more bucket has no edge.
EDGES_S = (0.1, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0, 600.0, 1800.0, 3600.0)


class RunOutcome(enum.StrEnum):
    """How an attempt of a run ended."""

    SUCCESS = "success"
    FAILED = "failed"  # and is not tried again by itself
    RETRIED = "retried"  # it failed, and has an attempt left
    CANCELED = "canceled"  # its worker stopped, and gave the attempt back
    LEASE_LOST = "lease_lost"  # its result was refused: the run was closed or taken over
    STALE = "stale"  # its runner fell silent; the leader closed it


@dataclass(slots=True)
class RunTotals:
    """Counts of one job. Each duration is in one bucket."""

    outcomes: Counter[RunOutcome] = field(default_factory=Counter)
    buckets: Counter[int] = field(default_factory=Counter)  # index in EDGES_S -> runs
    duration_ms: int = 0  # the sum
    starts: int = 0  # attempts of scheduled plans whose lateness was measured
    lateness_ms: int = 0  # the sum

    def cumulative(self) -> list[int]:
        """The number of runs up to each edge, then the number of all runs."""
        counts = []
        total = 0
        for index in range(len(EDGES_S) + 1):
            total += self.buckets[index]
            counts.append(total)
        return counts


def bucket(duration_s: float) -> int:
    """The index of the bucket of a duration."""
    return bisect_left(EDGES_S, duration_s)


def of_failure(code: FailureCode, is_retried: bool) -> RunOutcome:
    """The outcome of an attempt that ended with a failure code."""
    if code is FailureCode.CANCELED:
        return RunOutcome.CANCELED
    if code is FailureCode.LEASE_LOST:
        return RunOutcome.LEASE_LOST
    if code is FailureCode.STALE_TIMEOUT:
        return RunOutcome.STALE
    return RunOutcome.RETRIED if is_retried else RunOutcome.FAILED
