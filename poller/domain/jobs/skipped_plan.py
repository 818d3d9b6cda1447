"""The newest plan of a job if no run was made of it, and why. The ledger has rows of runs only."""

from __future__ import annotations

import enum
from dataclasses import dataclass

from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_terms import JobTerms

#: A plan has this long to get its run before it counts as skipped.
SETTLE_MS = 15_000


class SkipReason(enum.StrEnum):
    """Why no run was made of a plan."""

    PAUSED = "paused"
    UNSERVED = "no running worker has its package"
    UNPLANNED = "it cannot be planned"
    STILL_RUNNING = "the run before it goes on"
    HELD_BACK = "held back"
    NOT_STARTED = "not started"


@dataclass(frozen=True, slots=True)
class SkippedPlan:
    """A plan without a run."""

    plan_ms: int
    reason: SkipReason


@dataclass(frozen=True, slots=True)
class PlanFacts:
    """The facts that decide whether the newest plan of a job was skipped."""

    terms: JobTerms
    summary: JobSummary
    announced_ms: int
    now_ms: int
    paused_ms: int | None = None
    is_served: bool = True
    planning_fault: str = ""


def newest(facts: PlanFacts) -> SkippedPlan | None:
    """The newest plan that is due, if it has no run and the reason is known.

    A job that names its plans itself may leave plans out: only a pause explains a missing run.
    """
    due_ms = facts.now_ms - round(facts.terms.delay_s * 1000) - SETTLE_MS
    plan_ms = facts.terms.schedule.latest_ms(due_ms)
    if plan_ms <= max(facts.announced_ms, _newest_run_ms(facts.summary)):
        return None
    reason = _reason(facts, plan_ms)
    return None if reason is None else SkippedPlan(plan_ms, reason)


def _newest_run_ms(summary: JobSummary) -> int:
    """The newest plan with a run; 0 for a job that never ran."""
    last_ms = summary.last.plan.plan_ms if summary.last else 0
    return max(last_ms, summary.newest_plan_ms or 0)


def _reason(facts: PlanFacts, plan_ms: int) -> SkipReason | None:
    if facts.paused_ms is not None:
        return SkipReason.PAUSED if plan_ms >= facts.paused_ms else None
    if not facts.is_served:
        return SkipReason.UNSERVED
    if facts.planning_fault:
        return SkipReason.UNPLANNED
    if facts.summary.running and not facts.terms.overlap:
        return SkipReason.STILL_RUNNING
    if facts.summary.held_until_ms(facts.now_ms) is not None:
        return SkipReason.HELD_BACK
    chooses = facts.terms.names_plans or facts.terms.names_scopes
    return None if chooses else SkipReason.NOT_STARTED
