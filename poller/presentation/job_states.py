"""The jobs with their state: what SQL has of them, and the workers that have their packages."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from poller import errors
from poller.domain.jobs import held_back, job_health
from poller.domain.jobs.job_health import JobState, JobSummary
from poller.domain.jobs.job_queue import QUEUE_PREFIX
from poller.domain.record.overview import Worker

if TYPE_CHECKING:
    from sqlalchemy.engine import Engine

    from poller.bootstrap import Services
    from poller.db.jobs.job_catalog import CatalogJob
    from poller.plugins import Broken

NEVER_RAN = JobSummary()
#: The states that a person should look at, the weightiest first.
TROUBLED = (JobState.FAILING, JobState.OVERDUE, JobState.UNSERVED)


@dataclass(frozen=True, slots=True)
class StoredJobs:
    """The catalogue and the newest runs of each job, as of an instant of the database's clock."""

    as_of_ms: int
    jobs: Sequence[CatalogJob]
    summaries: Mapping[str, JobSummary] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ListedJob:
    """One job as people see it. `workers` is None while Redis cannot be asked."""

    job: CatalogJob
    summary: JobSummary
    state: JobState
    workers: Sequence[str] | None
    next_plan_ms: int | None  # None: it is not planned, because it is paused or gone
    as_of_ms: int

    @property
    def name(self) -> str:
        return self.job.name

    @property
    def held_until_ms(self) -> int | None:
        """Until when the job is held back; None if it is not."""
        return self.summary.held_until_ms(self.as_of_ms) if self.next_plan_ms else None

    @property
    def next_retry_ms(self) -> int | None:
        """When a failed run is tried again. A job that is held back is not tried before."""
        retry_ms, held_ms = self.summary.next_retry_ms, self.held_until_ms
        return max(retry_ms, held_ms) if retry_ms and held_ms else retry_ms

    @property
    def held_text(self) -> str:
        """Why and until when the job is held back; "" if it is not."""
        until_ms = self.held_until_ms
        return held_back.text(self.summary.losses, until_ms) if until_ms else ""

    @property
    def state_text(self) -> str:
        """The state in one word. A job that its package no longer has is `gone`."""
        return "gone" if self.job.gone_ms is not None else self.state.value


@dataclass(frozen=True, slots=True)
class BrokenJob:
    """A job that is installed but cannot be used, and why. It is not in the catalogue."""

    name: str
    distribution: str
    reason: str
    hint: str
    state: str
    workers: tuple[str, ...] = ()  # that have it so; none: it is so on this machine only


@dataclass(frozen=True, slots=True)
class JobList:
    """All jobs with their states, as of an instant of the database's clock."""

    as_of_ms: int
    jobs: Sequence[ListedJob]
    broken: Sequence[BrokenJob] = ()  # on the workers


def read(engine: Engine, with_gone: bool = False) -> StoredJobs:
    """Read all jobs and their newest runs. Raises StoreError."""
    from poller.db import database_clock
    from poller.db.jobs import job_catalog, job_history

    jobs = job_catalog.listing(engine, with_gone)
    summaries = job_history.summaries(engine) if jobs else {}
    return StoredJobs(database_clock.now_ms(engine), jobs, summaries)


def judge(stored: StoredJobs, workers: Sequence[Worker] | None) -> JobList:
    """The jobs in their order, each with its state. `workers` are the living ones, if known."""
    listed = tuple(of_job(job, stored, workers) for job in stored.jobs)
    return JobList(stored.as_of_ms, listed, broken_jobs(workers or ()))


def broken_jobs(workers: Iterable[Worker], here: Iterable[Broken] = ()) -> list[BrokenJob]:
    """The jobs that cannot be used here or by a worker, by name."""
    found: dict[str, BrokenJob] = {}
    for each in here:
        fields = (each.name, each.distribution, each.reason, each.hint, str(each.state))
        found[each.name] = BrokenJob(*fields)
    for worker in workers:
        for name, fault in worker.broken_jobs.items():
            job = found.get(name) or BrokenJob(
                name=name,
                distribution=fault.get("distribution", ""),
                reason=fault.get("reason", ""),
                hint=fault.get("hint", ""),
                state=fault.get("state", ""),
            )
            found[name] = replace(job, workers=(*job.workers, worker.name))
    return [found[name] for name in sorted(found)]


def of_job(job: CatalogJob, stored: StoredJobs, workers: Sequence[Worker] | None) -> ListedJob:
    """One job with its state."""
    summary = stored.summaries.get(job.name, NEVER_RAN)
    is_paused = job.paused_ms is not None
    serving = None if workers is None else serving_names(job.queue, workers)
    is_served = serving is None or bool(serving)
    is_planned = not is_paused and job.gone_ms is None
    now_ms = stored.as_of_ms

    return ListedJob(
        job=job,
        summary=summary,
        state=job_health.state(
            job.terms,
            summary,
            is_paused,
            is_served,
            now_ms,
            job.announced_ms,
            job.planning_fault,
        ),
        workers=serving,
        next_plan_ms=_next_plan_ms(job, summary, now_ms) if is_planned else None,
        as_of_ms=now_ms,
    )


def _next_plan_ms(job: CatalogJob, summary: JobSummary, now_ms: int) -> int:
    """The next plan; that of a job that is held back comes after it."""
    return job_health.next_plan_ms(job.terms, summary.held_until_ms(now_ms) or now_ms)


def serving_names(queue: str, workers: Iterable[Worker]) -> list[str]:
    """The workers that take from the queue, by name."""
    return sorted(worker.name for worker in workers if queue in worker.queues)


class JobsCache:
    """The jobs of a process that shows them again and again: read every two seconds at most.

    A read that takes long is kept longer, so that reading takes a twentieth of the time at most.
    Safe for threads.
    """

    MAX_AGE_S = 2.0
    SHARE = 20
    PATIENCE_S = 2.0

    def __init__(
        self,
        read_stored: Callable[[], StoredJobs],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._read_stored = read_stored
        self._clock = clock
        self._lock = threading.Lock()
        self._latest: JobList | None = None
        self._served: frozenset[tuple[str, str]] | None = None
        self._expires_mono = 0.0

    def get(self, workers: Sequence[Worker] | None) -> JobList:
        """The jobs; read again when they are old, or when other workers run. Raises StoreError.

        While another thread waits for a silent database this raises StoreUnavailable after a while.
        """
        served = None if workers is None else frozenset(_job_queues(workers))
        if not self._lock.acquire(timeout=self.PATIENCE_S):
            raise errors.StoreUnavailable("SQL has not answered a read of the jobs")
        try:
            started_mono = self._clock()
            is_old = started_mono >= self._expires_mono or served != self._served
            if self._latest is None or is_old:
                self._latest = judge(self._read_stored(), workers)
                self._served = served
                cost_s = self._clock() - started_mono
                self._expires_mono = started_mono + max(self.MAX_AGE_S, self.SHARE * cost_s)
            return self._latest
        finally:
            self._lock.release()

    def expire(self) -> None:
        """Read again at the next call: a job was changed here."""
        with self._lock:
            self._expires_mono = 0.0


def cache(services: Services) -> JobsCache:
    """The cache of a process on its real database."""
    return JobsCache(lambda: read(services.engine))


def _job_queues(workers: Iterable[Worker]) -> Iterator[tuple[str, str]]:
    """Each worker with each job queue that it serves."""
    for worker in workers:
        for queue in worker.queues:
            if queue.startswith(QUEUE_PREFIX):
                yield worker.name, queue
