"""Jobs and their runs as JSON fields, the same for the command line and the API. Fields may be
added, never changed. Instants are UTC datetimes, and the names of durations end with their unit.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import JobRun, Origin
from poller.domain.jobs.job_terms import JobTerms
from poller.presentation.job_states import TROUBLED, ListedJob

#: Running scopes that a job's item names; the others are counted.
MOST_RUNNING = 20
#: Jobs in trouble that an overview names; the others are counted.
MOST_TROUBLED = 20
#: The fields of a run that a job's item has of its last one.
_LAST_FIELDS = (
    "plan",
    "scope_kind",
    "scope_id",
    "origin",
    "outcome",
    "attempt",
    "max_attempts",
    "runner",
    "started",
    "finished",
    "duration_seconds",
    "error_code",
    "message",
)


def item(listed: ListedJob) -> dict[str, Any]:
    """One job: state, schedule, next plan, last run, and what runs now."""
    job = listed.job
    summary = listed.summary
    running = [holder(run, listed.as_of_ms) for run in summary.running[:MOST_RUNNING]]
    return {
        "name": job.name,
        "state": listed.state_text,
        "schedule": job.terms.schedule.text,
        "next_plan": instant(listed.next_plan_ms),
        **_last(listed),
        "last_success": instant(summary.last_success_ms),
        "failures_in_a_row": summary.failures,
        "next_retry": instant(listed.next_retry_ms),
        "held_back_until": instant(listed.held_until_ms),
        "held_back": listed.held_text,
        "running": running,
        "running_count": len(summary.running),
        "paused": instant(job.paused_ms),
        "paused_by": job.paused_by,
        "gone": instant(job.gone_ms),
        "planning_fault": job.planning_fault,
        "package": job.distribution,
        "queue": job.queue,
        "workers": None if listed.workers is None else len(listed.workers),
        "description": job.terms.description,
    }


def attention(jobs: Sequence[ListedJob]) -> dict[str, Any]:
    """The jobs in an overview: the number in each state, and those in trouble, the worst first."""
    states = Counter(listed.state.value for listed in jobs)
    troubled = [each for state in TROUBLED for each in jobs if each.state is state]
    return {
        "total": len(jobs),
        "states": {state.value: states[state.value] for state in JobState},
        "troubled": [item(each) for each in troubled[:MOST_TROUBLED]],
    }


def details(listed: ListedJob) -> dict[str, Any]:
    """One job with all its terms and the names of its workers."""
    return {
        **item(listed),
        "worker_names": None if listed.workers is None else list(listed.workers),
        "announced": instant(listed.job.announced_ms),
        "terms": terms(listed.job.terms),
    }


def terms(of: JobTerms) -> dict[str, Any]:
    """The terms, durations in seconds."""
    return {
        "schedule": of.schedule.to_json(),
        "delay_seconds": of.delay_s,
        "run_timeout_seconds": of.run_timeout_s,
        "heartbeat_seconds": of.heartbeat_s,
        "stale_timeout_seconds": of.stale_timeout_s,
        "reentrant": of.reentrant,
        "max_attempts": of.max_attempts,
        "retry_delays_seconds": list(of.retry_delays_s),
        "catch_up": of.catch_up.value,
        "catch_up_window_seconds": of.catch_up_window_s,
        "max_plans_per_tick": of.max_plans_per_tick,
        "overlap": of.overlap,
    }


def run(of: JobRun, as_of_ms: int) -> dict[str, Any]:
    """One row of the ledger. A running one has the age of its heartbeat at `as_of_ms`."""
    is_running = of.finished_ms is None
    return {
        "id": of.id,
        "job": of.plan.job,
        "plan": instant(of.plan.plan_ms),
        "scope_kind": of.plan.scope_kind,
        "scope_id": of.plan.scope_id,
        "origin": of.origin.value,
        "outcome": of.status.value.lower(),
        "attempt": of.attempt,
        "max_attempts": of.max_attempts,
        "next_retry": instant(of.next_retry_ms),
        "runner": of.runner,
        "dispatched": instant(of.dispatched_ms),
        "late_seconds": _seconds(late_ms(of)),
        "started": instant(of.started_ms),
        "finished": instant(of.finished_ms),
        "duration_seconds": _seconds(of.duration_ms),
        "heartbeat_age_seconds": _age_seconds(of.heartbeat_ms, as_of_ms) if is_running else None,
        "rows": of.rows_affected,
        "result": dict(of.result),
        "error_code": of.error_code,
        "message": of.message,
    }


def holder(of: JobRun, as_of_ms: int) -> dict[str, Any]:
    """A run that runs now: its scope, its runner, and the age of its heartbeat."""
    return {
        "scope_kind": of.plan.scope_kind,
        "scope_id": of.plan.scope_id,
        "plan": instant(of.plan.plan_ms),
        "runner": of.runner,
        "attempt": of.attempt,
        "max_attempts": of.max_attempts,
        "started": instant(of.started_ms),
        "running_seconds": _age_seconds(of.started_ms, as_of_ms),
        "heartbeat_age_seconds": _age_seconds(of.heartbeat_ms, as_of_ms),
    }


def instant(ms: int | None) -> datetime | None:
    """An instant in UTC; None for none."""
    return None if ms is None else datetime.fromtimestamp(ms / 1000, UTC)


def jsonable(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields with instants as RFC 3339 texts, for a response of the API."""
    return {name: _plain(value) for name, value in fields.items()}


def _plain(value: Any) -> Any:
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds").replace("+00:00", "Z")
    if isinstance(value, Mapping):
        return jsonable(value)
    if isinstance(value, list | tuple):
        return [_plain(each) for each in value]
    return value


def _last(listed: ListedJob) -> dict[str, Any]:
    """The run of the newest plan, in fields that begin with `last_`; None before the first."""
    last = listed.summary.last
    fields = {} if last is None else run(last, listed.as_of_ms)
    return {f"last_{name}": fields.get(name) for name in _LAST_FIELDS}


def late_ms(of: JobRun) -> int | None:
    """The time from the plan to its message; None for a further attempt and for a run by hand.

    The message of a further attempt was made after the wait for its retry.
    """
    if of.origin is Origin.DEMAND or of.attempt > 1:
        return None
    return max(0, of.dispatched_ms - of.plan.plan_ms)


def _seconds(ms: int | None) -> float | None:
    return None if ms is None else ms / 1000


def _age_seconds(since_ms: int, now_ms: int) -> float:
    return max(0, now_ms - since_ms) / 1000
