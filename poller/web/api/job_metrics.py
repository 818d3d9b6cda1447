"""The metrics of jobs: counters of ended runs from Redis, states and ages from SQL.

A job that its package no longer has is not exposed. While SQL or Redis cannot be read, no metric of
jobs is exposed: a gap in the graph, not old numbers.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from prometheus_client.core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    SummaryMetricFamily,
)
from prometheus_client.metrics_core import Metric
from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.run_totals import EDGES_S, RunOutcome, RunTotals
from poller.presentation.job_states import JobList, ListedJob

MAX_AGE_S = 1.0
_EDGES = [f"{edge:g}" for edge in EDGES_S] + ["+Inf"]


@dataclass(frozen=True, slots=True)
class JobReading:
    """One job at an instant, and its counters."""

    name: str
    state: JobState
    last_success_age_s: float | None  # None: it never succeeded
    running: int
    past_lease: int  # of the running ones: their runner sent no heartbeat in time
    totals: RunTotals


#: Reads all jobs. Blocks; raises StoreError.
ReadJobs = Callable[[], Sequence[JobReading]]


class JobReadings:
    """The latest readings, for one event loop: at most one read a second for all scrapes."""

    def __init__(self, read: ReadJobs, clock: Callable[[], float] = time.monotonic) -> None:
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._latest: Sequence[JobReading] | None = None
        self._expires_mono = -1.0

    async def get(self) -> Sequence[JobReading] | None:
        """The jobs; None while a store cannot be read."""
        async with self._lock:
            if self._clock() >= self._expires_mono:
                self._latest = await run_in_threadpool(self._take)
                self._expires_mono = self._clock() + MAX_AGE_S
            return self._latest

    def _take(self) -> Sequence[JobReading] | None:
        try:
            return self._read()
        except errors.StoreError:
            return None


def readings(listed: JobList, totals: Mapping[str, RunTotals]) -> list[JobReading]:
    """Each listed job with its counters."""
    return [_reading(job, totals.get(job.name, RunTotals())) for job in listed.jobs]


def _reading(job: ListedJob, totals: RunTotals) -> JobReading:
    now_ms = job.as_of_ms
    running = job.summary.running
    success_ms = job.summary.last_success_ms
    return JobReading(
        name=job.name,
        state=job.state,
        last_success_age_s=None if success_ms is None else max(0, now_ms - success_ms) / 1000,
        running=len(running),
        past_lease=sum(run.stale_ms <= now_ms for run in running),
        totals=totals,
    )


def metrics(jobs: Sequence[JobReading]) -> Iterator[Metric]:
    """The metrics of all jobs."""
    yield from _states(jobs)
    yield from _running(jobs)
    yield _ages(jobs)
    yield _runs(jobs)
    yield _stale_leases(jobs)
    yield _durations(jobs)
    yield _lateness(jobs)


def _states(jobs: Sequence[JobReading]) -> Iterator[Metric]:
    counts = Counter(job.state for job in jobs)
    numbers = GaugeMetricFamily("poller_jobs", "Jobs, by state.", labels=["state"])
    for state in JobState:
        numbers.add_metric([state.value], counts[state])
    yield numbers

    text = "1 for the state of a job."
    states = GaugeMetricFamily("poller_job_state", text, labels=["job", "state"])
    for job in jobs:
        states.add_metric([job.name, job.state.value], 1)
    yield states


def _running(jobs: Sequence[JobReading]) -> Iterator[Metric]:
    running = GaugeMetricFamily("poller_job_running", "Runs of a job now.", labels=["job"])
    text = "Runs of a job whose runner sent no heartbeat in time, and that are not closed yet."
    past_lease = GaugeMetricFamily("poller_job_stale_leases", text, labels=["job"])
    for job in jobs:
        running.add_metric([job.name], job.running)
        past_lease.add_metric([job.name], job.past_lease)
    yield running
    yield past_lease


def _ages(jobs: Sequence[JobReading]) -> Metric:
    text = "Time since a run of a job succeeded."
    family = GaugeMetricFamily("poller_job_last_success_age_seconds", text, labels=["job"])
    for job in jobs:
        if job.last_success_age_s is not None:
            family.add_metric([job.name], job.last_success_age_s)
    return family


def _runs(jobs: Sequence[JobReading]) -> Metric:
    """All outcomes, also those that did not happen: the first failure is then a rise from 0."""
    text = "Ended attempts of runs, by outcome."
    family = CounterMetricFamily("poller_job_runs", text, labels=["job", "outcome"])
    for job in jobs:
        for outcome in RunOutcome:
            family.add_metric([job.name, outcome.value], job.totals.outcomes[outcome])
    return family


def _stale_leases(jobs: Sequence[JobReading]) -> Metric:
    text = "Runs that the leader closed because their runner sent no heartbeat any more."
    family = CounterMetricFamily("poller_job_stale_leases_closed", text, labels=["job"])
    for job in jobs:
        family.add_metric([job.name], job.totals.outcomes[RunOutcome.STALE])
    return family


def _durations(jobs: Sequence[JobReading]) -> Metric:
    text = "Durations of attempts that their runner ended."
    family = HistogramMetricFamily("poller_job_duration_seconds", text, labels=["job"])
    for job in jobs:
        counts = job.totals.cumulative()
        if counts[-1]:
            buckets = list(zip(_EDGES, counts, strict=True))
            family.add_metric([job.name], buckets, job.totals.duration_ms / 1000)
    return family


def _lateness(jobs: Sequence[JobReading]) -> Metric:
    text = "Dispatch of a run minus its plan and delay, first attempts of scheduled plans."
    family = SummaryMetricFamily("poller_job_lateness_seconds", text, labels=["job"])
    for job in jobs:
        if job.totals.starts:
            family.add_metric([job.name], job.totals.starts, job.totals.lateness_ms / 1000)
    return family
