"""One job in full, for the command line, the API and the page."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from zoneinfo import ZoneInfo

from poller import errors
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_history, job_lookup
from poller.domain.inventory import duration
from poller.domain.jobs import job_run
from poller.domain.jobs.job_run import JobRun, Status
from poller.domain.jobs.job_schedule import Cron, Schedule
from poller.domain.jobs.job_terms import CatchUp, JobTerms
from poller.domain.record.overview import Worker
from poller.presentation import job_json, job_states, job_texts
from poller.presentation.job_states import ListedJob, StoredJobs

if TYPE_CHECKING:
    from poller.bootstrap import Services

NEXT_PLANS = 5
LAST_RUNS = 10
MOST_SCOPES = 20
#: Workers that are named; the others are counted.
MOST_WORKERS = 10


@dataclass(frozen=True, slots=True)
class ShownJob:
    """A job, its newest runs, and the first of its scopes. All reads are bounded."""

    listed: ListedJob
    runs: Sequence[JobRun]
    scopes: Sequence[tuple[str, str]]
    more_scopes: bool


@dataclass(frozen=True, slots=True)
class RunsQuery:
    """Which runs, the newest first. `before_id` is the `next_id` of the page before."""

    job: str = ""  # "": of all jobs
    status: Status | None = None
    limit: int = 50
    before_id: int | None = None
    scope: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class RunsPage:
    """A page of runs, as of an instant of the database's clock."""

    runs: Sequence[JobRun]
    as_of_ms: int
    next_id: int | None  # None: there is no older run

    def items(self) -> list[dict[str, Any]]:
        """The JSON fields of each run."""
        return [job_json.run(each, self.as_of_ms) for each in self.runs]


def runs(services: Services, query: RunsQuery) -> RunsPage:
    """Read a page of runs. Raises NotFound for an unknown job, StoreError."""
    engine = services.engine
    found = job_history.runs(
        engine, query.job, query.status, query.limit, query.before_id, query.scope
    )
    if query.job and not found:
        job_catalog.get(engine, query.job)
    next_id = found[-1].id if len(found) == query.limit else None
    return RunsPage(found, database_clock.now_ms(engine), next_id)


def show(services: Services, name: str, workers: Sequence[Worker] | None) -> ShownJob:
    """Read one job. Raises NotFound with the nearest name, StoreError."""
    engine = services.engine
    try:
        job = job_catalog.get(engine, name)
    except errors.NotFound:
        _refuse_broken(name, workers or ())
        raise
    stored = StoredJobs(
        as_of_ms=database_clock.now_ms(engine),
        jobs=(job,),
        summaries=job_history.summaries(engine),
    )
    scopes = job_lookup.scopes(engine, name, MOST_SCOPES + 1)
    return ShownJob(
        listed=job_states.of_job(job, stored, workers),
        runs=job_history.runs(engine, name, limit=LAST_RUNS),
        scopes=scopes[:MOST_SCOPES],
        more_scopes=len(scopes) > MOST_SCOPES,
    )


def _refuse_broken(name: str, workers: Sequence[Worker]) -> None:
    """Raise NotFound with the fault if a worker has the job, and cannot use it."""
    for each in job_states.broken_jobs(workers):
        if each.name == name:
            text = f'job "{name}" ({each.distribution}) cannot be used by {each.workers[0]}'
            raise errors.NotFound(text, cause=each.reason, hint=each.hint) from None


def document(shown: ShownJob) -> dict[str, Any]:
    """The JSON fields of one job, instants as datetimes."""
    listed = shown.listed
    runs = [job_json.run(each, listed.as_of_ms) for each in shown.runs]
    return {
        **job_json.details(listed),
        "next_plans": _next_plans(listed),
        "scopes": [{"scope_kind": kind, "scope_id": key} for kind, key in shown.scopes],
        "more_scopes": shown.more_scopes,
        "runs": runs,
        "last_result": _last_result(shown.runs),
        "last_error": _last_error(shown.runs),
    }


def terms_in_words(terms: JobTerms) -> Iterator[tuple[str, str]]:
    """The terms as people read them, each with its name."""
    yield "schedule", terms.schedule.text
    if terms.delay_s:
        yield "delay", f"each plan is attempted {_length(terms.delay_s)} after its time"
    yield "run time-out", _length(terms.run_timeout_s)
    yield "heartbeat", f"every {_length(terms.heartbeat_s)}"
    silent = f"after {_length(terms.stale_timeout_s)} without a heartbeat"
    yield "abandoned", f"{silent}, then {'run again' if terms.reentrant else 'left to a person'}"
    yield "retries", _retries(terms)
    yield "catch-up", _catch_up(terms)
    yield "overlap", "allowed" if terms.overlap else "no: one run of a scope at a time"


def workers_in_words(names: Sequence[str] | None) -> str:
    """The workers that have a job, the first of many by name."""
    if names is None:
        return "not known: Redis cannot be asked"
    shown = ", ".join(names[:MOST_WORKERS])
    more = len(names) - MOST_WORKERS
    return f"{shown} and {more:,} more" if more > 0 else shown or "none has its package"


def scopes_in_words(shown: ShownJob) -> str:
    """The scopes that ran: `site:ams, site:rtm and more`."""
    texts = [job_run.scope_text(kind, key) for kind, key in shown.scopes]
    return ", ".join(texts) + (" and more" if shown.more_scopes else "") or "none has run"


def _retries(terms: JobTerms) -> str:
    """The attempts, and the waits between them that are used; the last one is used again."""
    if terms.max_attempts == 1:
        return "no retry"
    attempts = f"{terms.max_attempts} attempts"
    if not terms.retry_delays_s:
        return f"no retry; an abandoned run has {attempts}" if terms.reentrant else "no retry"
    used = terms.retry_delays_s[: terms.max_attempts - 1]
    return f"{attempts}, again after {', '.join(_length(each) for each in used)}"


def _catch_up(terms: JobTerms) -> str:
    if terms.catch_up is CatchUp.LATEST_ONLY:
        return f"{terms.catch_up}: of missed plans only the newest is run"
    window = _length(terms.catch_up_window_s)
    return f"{terms.catch_up} of the last {window}, {terms.max_plans_per_tick} at a time"


def _length(seconds: float) -> str:
    return duration.rounded_text(round(seconds * 1000))


def _next_plans(listed: ListedJob) -> list[dict[str, Any]]:
    """The next plans in UTC and in the local time of the schedule, or of this machine."""
    plan_ms = listed.next_plan_ms
    schedule = listed.job.terms.schedule
    plans: list[dict[str, Any]] = []
    while plan_ms is not None and len(plans) < NEXT_PLANS:
        at = job_json.instant(plan_ms)
        assert at is not None
        local = at.astimezone(_zone(schedule))
        plans.append({"utc": at, "local": local.isoformat(sep=" ", timespec="seconds")})
        plan_ms = schedule.next_ms(plan_ms)
    return plans


def _zone(schedule: Schedule) -> ZoneInfo | None:
    """The time zone of a cron expression; None, which is that of this machine, for a cadence."""
    return ZoneInfo(schedule.timezone) if isinstance(schedule, Cron) else None


def result_text(result: Mapping[str, Any]) -> str:
    """The details of a run for people, a line for each; "" for none."""
    return json.dumps(result, ensure_ascii=False, indent=2) if result else ""


def _last_result(runs: Sequence[JobRun]) -> dict[str, Any]:
    """The details of the newest run that succeeded."""
    succeeded = next((run for run in runs if run.status is Status.SUCCESS), None)
    return dict(succeeded.result) if succeeded else {}


def _last_error(runs: Sequence[JobRun]) -> str:
    """The error of the newest run that failed, in full; "" if none of these did."""
    failed = next((run for run in runs if run.status is Status.FAILED), None)
    if failed is None:
        return ""
    return job_texts.error(failed.error_code, failed.message)
