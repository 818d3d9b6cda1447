"""The state of a job, from its newest runs."""

from __future__ import annotations

from typing import Any

from poller.domain.jobs.job_health import JobState, JobSummary, next_plan_ms, state
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Plan, Status
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import JobTerms

MINUTE_MS = 60_000
HOUR_MS = 60 * MINUTE_MS
NOON = 1_800_014_400_000
HOURLY = JobTerms("job", Cadence(HOUR_MS))
GRACE_MS = 120_000  # two stale time-outs


def run(plan_ms: int, status: Status = Status.SUCCESS, **values: Any) -> JobRun:
    fields = {
        "id": 1,
        "plan": Plan("job", "global", "global", plan_ms),
        "origin": Origin.SCHEDULE,
        "status": status,
        "attempt": 1,
        "max_attempts": 3,
        "next_retry_ms": None,
        "runner": "worker@one",
        "dispatched_ms": plan_ms,
        "started_ms": plan_ms,
        "heartbeat_ms": plan_ms,
        "stale_ms": plan_ms + 60_000,
        "finished_ms": None,
        "duration_ms": None,
        "rows_affected": 0,
        "result": {},
        "error_code": "",
        "message": "",
    }
    return JobRun(**{**fields, **values})


def seen(summary: JobSummary, now_ms: int, terms: JobTerms = HOURLY, **values: Any) -> JobState:
    return state(terms, summary, **{"paused": False, "served": True, "now_ms": now_ms, **values})


def test_a_job_that_ran_at_its_plan_is_ok() -> None:
    """Until the grace of the next plan is over."""
    summary = JobSummary(run(NOON))
    assert seen(summary, NOON + MINUTE_MS) is JobState.OK
    assert seen(summary, NOON + HOUR_MS + GRACE_MS - 1) is JobState.OK
    assert seen(summary, NOON + HOUR_MS + GRACE_MS) is JobState.OVERDUE


def test_the_grace_has_a_least_and_the_delay_counts() -> None:
    """A short stale time-out does not make a job overdue at once."""
    short = JobTerms("job", Cadence(HOUR_MS), delay_s=600, heartbeat_s=1, stale_timeout_s=3)
    summary = JobSummary(run(NOON))
    due = NOON + HOUR_MS + 600_000
    assert seen(summary, due + 59_999, short) is JobState.OK
    assert seen(summary, due + 60_000, short) is JobState.OVERDUE


def test_a_new_job_waits_and_is_overdue_after_the_grace() -> None:
    """Its latest plan is due as soon as a worker announced it."""
    assert seen(JobSummary(), NOON, announced_ms=NOON - GRACE_MS + 1) is JobState.WAITING
    assert seen(JobSummary(), NOON, announced_ms=NOON - GRACE_MS) is JobState.OVERDUE


def test_new_terms_and_a_resumed_job_have_the_grace_too() -> None:
    """A daily job that becomes hourly has not missed the hours before."""
    old = JobSummary(run(NOON - 20 * HOUR_MS))
    assert seen(old, NOON, announced_ms=NOON - GRACE_MS + 1) is JobState.OK
    assert seen(old, NOON, announced_ms=NOON - GRACE_MS) is JobState.OVERDUE


def test_a_job_that_lists_its_scopes_or_plans_may_have_no_run() -> None:
    """No scope and no plan is not a missing run; a job with scopes that ran before must go on."""
    scoped = JobTerms("job", Cadence(HOUR_MS), names_scopes=True)
    hooked = JobTerms("job", Cadence(HOUR_MS), names_plans=True)
    old = JobSummary(run(NOON - 5 * HOUR_MS))
    assert seen(JobSummary(), NOON, scoped) is JobState.WAITING
    assert seen(old, NOON, scoped) is JobState.OVERDUE
    assert seen(JobSummary(), NOON, hooked) is JobState.WAITING
    assert seen(old, NOON, hooked) is JobState.OK


def test_a_paused_job_is_paused_whatever_else() -> None:
    """A person's will comes first."""
    failed = JobSummary(run(NOON - 5 * HOUR_MS, Status.FAILED))
    assert seen(failed, NOON, paused=True, served=False) is JobState.PAUSED


def test_a_job_without_a_worker_is_unserved_when_it_should_have_run() -> None:
    """Before its next plan it is as its last run left it."""
    summary = JobSummary(run(NOON))
    assert seen(summary, NOON + MINUTE_MS, served=False) is JobState.OK
    assert seen(summary, NOON + 2 * HOUR_MS, served=False) is JobState.UNSERVED
    assert seen(JobSummary(), NOON, served=False) is JobState.UNSERVED
    assert seen(JobSummary(), NOON, served=False, announced_ms=NOON) is JobState.WAITING


def test_a_run_that_does_not_end_is_overdue() -> None:
    """After run time-out and stale time-out a run should have been closed."""
    running = run(NOON, Status.RUNNING)
    summary = JobSummary(running, running=(running,))
    longest = 660_000
    assert seen(summary, NOON + longest) is JobState.RUNNING
    assert seen(summary, NOON + longest + 1) is JobState.OVERDUE


def test_running_comes_before_failures_and_missed_plans() -> None:
    """The run may mend them."""
    running = run(NOON - 5 * HOUR_MS, Status.RUNNING, started_ms=NOON)
    summary = JobSummary(run(NOON - HOUR_MS, Status.FAILED), running=(running,), failures=3)
    assert seen(summary, NOON + MINUTE_MS) is JobState.RUNNING


def test_a_failed_plan_is_failing_until_a_newer_one_succeeds() -> None:
    """With and without a retry to come; a missed plan does not hide the failure."""
    failed = run(NOON, Status.FAILED, error_code=FailureCode.HANDLER_ERROR)
    waiting = run(NOON, Status.FAILED, next_retry_ms=NOON + HOUR_MS)
    assert seen(JobSummary(failed, failures=1), NOON + MINUTE_MS) is JobState.FAILING
    assert seen(JobSummary(waiting, failures=1), NOON + MINUTE_MS) is JobState.FAILING
    assert seen(JobSummary(failed, failures=1), NOON + 9 * HOUR_MS) is JobState.FAILING
    assert seen(JobSummary(run(NOON + HOUR_MS)), NOON + HOUR_MS) is JobState.OK


def test_a_run_whose_worker_stopped_is_no_failure() -> None:
    """It is run again at once; if it is not, the next plan is overdue."""
    canceled = run(NOON, Status.FAILED, error_code=FailureCode.CANCELED, next_retry_ms=NOON)
    assert seen(JobSummary(canceled), NOON + MINUTE_MS) is JobState.OK
    assert seen(JobSummary(canceled), NOON + 2 * HOUR_MS) is JobState.OVERDUE


def test_the_next_plan_is_the_first_that_is_not_due() -> None:
    """A plan within its delay is still to come."""
    delayed = JobTerms("job", Cadence(HOUR_MS), delay_s=300)
    assert next_plan_ms(HOURLY, NOON) == NOON + HOUR_MS
    assert next_plan_ms(delayed, NOON + 299_999) == NOON
    assert next_plan_ms(delayed, NOON + 300_000) == NOON + HOUR_MS
    assert next_plan_ms(JobTerms("job", Cron("0 0 29 2 *")), NOON) > NOON
