"""The state of a job, from its terms and a summary of its runs."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.jobs import held_back
from poller.domain.jobs.job_run import FailureCode, JobRun, Status
from poller.domain.jobs.job_terms import JobTerms

#: A plan without a run is overdue after this time, or after two stale time-outs if longer.
LEAST_GRACE_S = 60.0


class JobState(enum.StrEnum):
    """The state of a job, for people and for events."""

    OK = "ok"
    RUNNING = "running"
    FAILING = "failing"  # the newest plan failed, for good or until its retry, or planning fails
    OVERDUE = "overdue"  # a plan was not started, or a run does not end
    PAUSED = "paused"
    UNSERVED = "unserved"  # no living worker has the job installed, and a plan was not started
    WAITING = "waiting"  # it never ran, and no plan was missed


@dataclass(frozen=True, slots=True)
class JobSummary:
    """The runs of a job in short, all scopes together."""

    last: JobRun | None = None  # the newest by plan; or a failed one that another scope still has
    last_success_ms: int | None = None  # when it finished
    last_success_plan_ms: int | None = None
    running: tuple[JobRun, ...] = ()
    next_retry_ms: int | None = None
    failures: int = 0  # failed runs in a row, newest first
    newest_plan_ms: int | None = None  # if it is not that of `last`
    losses: int = 0  # attempts in a row whose runner was lost
    lost_ms: int = 0  # when the last of them was closed
    usual_ms: int | None = None  # what the newest success took

    def held_until_ms(self, now_ms: int) -> int | None:
        """Until when the job is held back; None if it is not."""
        return held_back.until_ms(self.losses, self.lost_ms, now_ms)


def state(
    terms: JobTerms,
    summary: JobSummary,
    paused: bool,
    served: bool,
    now_ms: int,
    announced_ms: int = 0,
    planning_fault: str = "",
) -> JobState:
    """The state of a job: the first of these that applies.

    PAUSED is a person's will and explains all that follows. UNSERVED explains a missing run. A run
    that does not end is OVERDUE, though it counts as running. RUNNING comes before the result of
    earlier runs, as it may mend them. FAILING comes before a missing run: its message says more.
    `announced_ms` is when the terms became what they are, or a pause ended: plans that this made
    due have the grace from then on. A job with a `planning_fault` has no new runs that could fail.
    """
    is_missing = _misses_run(terms, summary, now_ms, announced_ms)
    if paused:
        return JobState.PAUSED
    if not served and is_missing:
        return JobState.UNSERVED
    if any(_is_stuck(terms, run, now_ms) for run in summary.running):
        return JobState.OVERDUE
    if summary.running:
        return JobState.RUNNING
    is_held = summary.held_until_ms(now_ms) is not None
    if planning_fault or is_held or (summary.last is not None and _has_failed(summary.last)):
        return JobState.FAILING
    if is_missing and _must_run(terms, summary):
        return JobState.OVERDUE
    return JobState.WAITING if summary.last is None else JobState.OK


def next_plan_ms(terms: JobTerms, now_ms: int) -> int:
    """The first plan that is not yet due. It is attempted `delay_s` after its instant."""
    return terms.schedule.next_ms(now_ms - round(terms.delay_s * 1000))


def _misses_run(terms: JobTerms, summary: JobSummary, now_ms: int, announced_ms: int) -> bool:
    """True if the newest plan that should have been attempted has no run at or after it."""
    grace_ms = round(max(LEAST_GRACE_S, 2 * terms.stale_timeout_s) * 1000)
    if now_ms < announced_ms + grace_ms:
        return False
    if summary.last is None:
        return True
    due_ms = now_ms - round(terms.delay_s * 1000) - grace_ms
    newest_ms = max(summary.last.plan.plan_ms, summary.newest_plan_ms or 0)
    return newest_ms < terms.schedule.latest_ms(due_ms)


def _must_run(terms: JobTerms, summary: JobSummary) -> bool:
    """False if the job itself may have left the plan out: its hook or its scopes listed none."""
    if terms.names_plans:
        return False
    return summary.last is not None or not terms.names_scopes


def _is_stuck(terms: JobTerms, run: JobRun, now_ms: int) -> bool:
    longest_ms = round((terms.run_timeout_s + terms.stale_timeout_s) * 1000)
    return now_ms > run.started_ms + longest_ms


def _has_failed(run: JobRun) -> bool:
    """True for a failed run. A run whose worker stopped is not: it is run again at once."""
    return run.status is Status.FAILED and run.error_code != FailureCode.CANCELED
