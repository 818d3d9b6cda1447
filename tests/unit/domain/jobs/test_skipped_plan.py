"""Why the newest plan of a job has no run."""

from __future__ import annotations

from typing import Any

import pytest

from poller.domain.jobs import skipped_plan
from poller.domain.jobs.held_back import LOSSES
from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_run import Status
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms
from poller.domain.jobs.skipped_plan import SETTLE_MS, PlanFacts, SkippedPlan, SkipReason
from tests.unit.domain.jobs.test_job_health import HOUR_MS, MINUTE_MS, NOON, run

NOW_MS = NOON + MINUTE_MS
ELEVEN = NOON - HOUR_MS
TERMS = JobTerms("job", Cadence(HOUR_MS))


def facts(**changes: Any) -> PlanFacts:
    """An hourly job whose plan of noon has no run, a minute later."""
    given = {
        "terms": TERMS,
        "summary": JobSummary(last=run(ELEVEN)),
        "announced_ms": NOON - 24 * HOUR_MS,
        "now_ms": NOW_MS,
    }
    return PlanFacts(**{**given, **changes})


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({}, SkipReason.NOT_STARTED),
        ({"paused_ms": ELEVEN}, SkipReason.PAUSED),
        ({"is_served": False}, SkipReason.UNSERVED),
        ({"planning_fault": "scopes: no"}, SkipReason.UNPLANNED),
        (
            {"summary": JobSummary(running=(run(ELEVEN, Status.RUNNING),))},
            SkipReason.STILL_RUNNING,
        ),
        (
            {"summary": JobSummary(last=run(ELEVEN), losses=LOSSES, lost_ms=NOW_MS)},
            SkipReason.HELD_BACK,
        ),
    ],
)
def test_the_reason_is_what_keeps_the_plan_from_a_run(
    changes: dict[str, Any], reason: SkipReason
) -> None:
    """The plan is that of noon."""
    assert skipped_plan.newest(facts(**changes)) == SkippedPlan(NOON, reason)


@pytest.mark.parametrize(
    "changes",
    [
        {"summary": JobSummary(last=run(NOON))},
        {"summary": JobSummary(last=run(ELEVEN), newest_plan_ms=NOON)},
        {"announced_ms": NOON + 1},
        {"now_ms": NOON + SETTLE_MS - 1},
        {"paused_ms": NOON + 1},
        {"terms": JobTerms("job", Cadence(HOUR_MS), names_plans=True)},
        {"terms": JobTerms("job", Cadence(HOUR_MS), names_scopes=True)},
        {"terms": JobTerms("job", Cadence(HOUR_MS), delay_s=120.0)},
    ],
)
def test_a_plan_is_not_skipped(changes: dict[str, Any]) -> None:
    """It has a run, was not announced, is just due or delayed, or the job may leave it out."""
    assert skipped_plan.newest(facts(**changes)) is None
