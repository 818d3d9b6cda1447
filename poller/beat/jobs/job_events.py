"""Events of jobs: made by the leader when the state of a job differs from what was told.

The catalogue keeps what was told, so a new leader neither repeats an event nor leaves one out.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime

from poller.bootstrap import Services
from poller.db.jobs import job_catalog
from poller.db.jobs.job_catalog import CatalogJob
from poller.domain.jobs import held_back, job_health, told_state
from poller.domain.jobs.job_health import JobState, JobSummary
from poller.domain.jobs.job_run import JobRun
from poller.domain.record.event_kinds import Event, Kind
from poller.event_publisher import EventLog

_NEVER_RAN = JobSummary()


class JobEvents:
    """The leader's comparison of states with events."""

    def __init__(self, services: Services, events: EventLog) -> None:
        self._services = services
        self._events = events

    def check(
        self,
        jobs: Sequence[CatalogJob],
        summaries: Mapping[str, JobSummary],
        served: Collection[str],
        now_ms: int,
        settled: Collection[str],
    ) -> None:
        """Record an event for each job whose state is news. Raises StoreError.

        Only jobs that are `settled` are told as overdue.
        """
        for job in jobs:
            summary = summaries.get(job.name, _NEVER_RAN)
            state = job_health.state(
                job.terms,
                summary,
                paused=job.paused_ms is not None,
                served=job.queue in served,
                now_ms=now_ms,
                announced_ms=job.announced_ms,
                planning_fault=job.planning_fault,
            )
            is_held = summary.held_until_ms(now_ms) is not None
            notice = told_state.notice(job.told, state, job.gone_ms is not None, is_held)
            if notice and notice.told == told_state.OVERDUE and job.name not in settled:
                continue
            # The note comes first: an event that is told twice is worse than one that a crash in
            # this moment swallows.
            if notice and job_catalog.tell(self._services.engine, job.name, job.told, notice.told):
                text = _text(notice.kind, job, summary, state, now_ms)
                self._events.record(_event(notice.kind, job, state, text, now_ms))


def _event(kind: Kind, job: CatalogJob, state: JobState, text: str, now_ms: int) -> Event:
    data = {"job": job.name, "queue": job.queue, "state": state.value}
    return Event(now_ms, kind, f"job {job.name} {text}", data=data)


def _text(kind: Kind, job: CatalogJob, summary: JobSummary, state: JobState, now_ms: int) -> str:
    if kind is Kind.JOB_ADDED:
        return f"was added by {job.distribution}: {job.terms.schedule.text}"
    if kind is Kind.JOB_VANISHED:
        return f"is gone: no worker has it any more, {job.distribution} had it"
    if kind is Kind.JOB_FAILED:
        return _unplanned(job) or _failure(summary.last)
    if kind is Kind.JOB_HELD_BACK:
        return f"is {_held_back(summary, now_ms)}"
    if kind is Kind.JOB_RECOVERED:
        return "has recovered"
    return _overdue(job, summary, state)


def _unplanned(job: CatalogJob) -> str:
    return f"cannot be planned: {job.planning_fault}" if job.planning_fault else ""


def _held_back(summary: JobSummary, now_ms: int) -> str:
    return held_back.text(summary.losses, summary.held_until_ms(now_ms) or now_ms)


def _failure(run: JobRun | None) -> str:
    if run is None:
        return "failed"
    text = f"failed: {run.error_code}: {run.message}"
    if run.next_retry_ms is None:
        return f"{text}; it is not tried again by itself"
    retry = _instant(run.next_retry_ms)
    return f"{text}; attempt {run.attempt} of {run.max_attempts}, the next one at {retry}"


def _overdue(job: CatalogJob, summary: JobSummary, state: JobState) -> str:
    if state is JobState.UNSERVED:
        return f"waits: no running worker has its package, {job.distribution}"
    if summary.running:
        run = summary.running[0]
        return f"is overdue: the run of {_instant(run.plan.plan_ms)} on {run.runner} does not end"
    last = "it never ran" if summary.last is None else _last(summary.last)
    return f"is overdue: a plan was not started, {last}"


def _last(run: JobRun) -> str:
    return f"its last run was that of {_instant(run.plan.plan_ms)}"


def _instant(at_ms: int) -> str:
    return datetime.fromtimestamp(at_ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
