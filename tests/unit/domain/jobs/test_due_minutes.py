"""The plans of the next minutes."""

from __future__ import annotations

from poller.domain.jobs import due_minutes
from poller.domain.jobs.job_schedule import Cadence, Cron
from poller.domain.jobs.job_terms import JobTerms
from tests.unit.domain.jobs.test_job_health import MINUTE_MS, NOON


def test_plans_are_counted_in_minutes_of_the_clock() -> None:
    """Whatever the second of the question, and each job by name."""
    often = JobTerms("often", Cadence(30_000))
    quarter = JobTerms("quarter", Cron("*/5 * * * *"))
    jobs = [(often, NOON + 30_000), (quarter, NOON + 5 * MINUTE_MS)]
    found = due_minutes.ahead(jobs, NOON + 25_000, 15)
    assert [each.start_ms for each in found] == [NOON + n * MINUTE_MS for n in range(15)]
    assert [each.total for each in found] == [1, 2, 2, 2, 2, 3, 2, 2, 2, 2, 3, 2, 2, 2, 2]
    assert found[5].plans == {"often": 2, "quarter": 1}


def test_a_delayed_plan_counts_when_it_is_attempted() -> None:
    """One that is late is due now."""
    delayed = JobTerms("delayed", Cadence(60 * MINUTE_MS), delay_s=180.0)
    late = JobTerms("late", Cadence(60 * MINUTE_MS))
    found = due_minutes.ahead([(delayed, NOON), (late, NOON)], NOON + 2 * MINUTE_MS, 15)
    assert (found[0].plans, found[1].plans) == ({"late": 1}, {"delayed": 1})


def test_no_job_makes_no_plan() -> None:
    """The minutes are there all the same."""
    assert [each.total for each in due_minutes.ahead([], NOON, 3)] == [0, 0, 0]
