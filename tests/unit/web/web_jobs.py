"""Jobs in every state, at the time of the overviews; one of them with runs."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet

from poller.db.jobs.job_catalog import CatalogJob
from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_run import JobRun, Origin, Plan, Status
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import JobTerms
from poller.presentation import job_states
from poller.presentation.job_states import JobList, ListedJob, StoredJobs
from poller.service.job_listing import RunsPage, RunsQuery, ShownJob

NOW_MS = fleet.NOW_MS
MINUTE_MS = 60_000
WORKERS = (fleet.worker(1, name="w1@a", queues=("job.poller",)),)


def job(name: str, **changes: object) -> CatalogJob:
    """A job of our own package, every five minutes."""
    terms = JobTerms(name, Cadence(5 * MINUTE_MS), f"The job {name}.")
    made = CatalogJob(
        name=name,
        queue="job.poller",
        distribution="poller 0.3.0",
        terms=terms,
        announced_ms=NOW_MS - 86_400_000,
        paused_ms=None,
        paused_by="",
        gone_ms=None,
        told="",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def run(name: str, age_ms: int = 2 * MINUTE_MS, **changes: object) -> JobRun:
    """A run that succeeded two minutes ago."""
    plan_ms = NOW_MS - age_ms
    made = JobRun(
        id=7,
        plan=Plan(name, "global", "global", plan_ms),
        origin=Origin.SCHEDULE,
        status=Status.SUCCESS,
        attempt=1,
        max_attempts=3,
        next_retry_ms=None,
        runner="w1@a",
        dispatched_ms=plan_ms + 120,
        started_ms=plan_ms + 200,
        heartbeat_ms=plan_ms + 200,
        stale_ms=plan_ms + 60_200,
        finished_ms=plan_ms + 1_700,
        duration_ms=1_500,
        rows_affected=1_204,
        result={"rows": 1_204},
        error_code="",
        message="",
    )
    return dataclasses.replace(made, **changes)  # type: ignore[arg-type]


def running(name: str, **changes: object) -> JobRun:
    """A run that started 40 s ago; its last heartbeat was 3 s ago."""
    began = {"started_ms": NOW_MS - 40_000, "heartbeat_ms": NOW_MS - 3_000}
    open_end = {"status": Status.RUNNING, "finished_ms": None, "duration_ms": None}
    return run(name, **{**began, **open_end, **changes})


def failed(name: str, **changes: object) -> JobRun:
    """A run that failed, and is run again in a minute."""
    fields = {
        "status": Status.FAILED,
        "attempt": 2,
        "next_retry_ms": NOW_MS + MINUTE_MS,
        "error_code": "handler_error",
        "message": "OSError: no route\nto the archive",
    }
    return run(name, **{**fields, **changes})


_BROKEN = failed("broken")
_BUSY = running("busy")
JOBS = (
    job("absent", queue="job.acme", distribution="acme-jobs 1.2"),
    job("broken"),
    job("busy"),
    job("late"),
    job("nightly", terms=JobTerms("nightly", Cron("0 2 * * *", "Europe/Amsterdam"))),
    job("prune"),
    job("rested", paused_ms=NOW_MS - MINUTE_MS, paused_by="ada"),
)
SUMMARIES = {
    "absent": JobSummary(last=run("absent", 90 * MINUTE_MS)),
    "broken": JobSummary(last=_BROKEN, next_retry_ms=_BROKEN.next_retry_ms, failures=3),
    "busy": JobSummary(last=_BUSY, running=(_BUSY, running("busy"))),
    "late": JobSummary(last=run("late", 90 * MINUTE_MS)),
    "nightly": JobSummary(last=run("nightly", 10 * MINUTE_MS)),
    "prune": JobSummary(last=run("prune")),
}
STORED = StoredJobs(NOW_MS, JOBS, SUMMARIES)
LISTED = job_states.judge(STORED, WORKERS)


def named(name: str) -> ListedJob:
    return next(each for each in LISTED.jobs if each.name == name)


def only(*names: str) -> JobList:
    """A list of some of these jobs."""
    return JobList(NOW_MS, [named(name) for name in names])


def shown(name: str) -> ShownJob:
    """One job with its last run and two scopes."""
    last = SUMMARIES[name].last
    assert last is not None
    scopes = [("global", "global"), ("site", "ams")]
    return ShownJob(named(name), [last, run(name, id=6)], scopes, more_scopes=True)


def page(query: RunsQuery) -> RunsPage:
    """A page of runs as long as asked for."""
    newest = query.before_id or 1_000
    runs = [run(query.job, id=newest - number) for number in range(1, query.limit + 1)]
    return RunsPage(runs, NOW_MS, runs[-1].id)
