"""The records of RedBeat's entries of jobs."""

from __future__ import annotations

import json

import pytest

from poller.beat.jobs import job_entries, job_messages
from poller.beat.jobs.job_entries import JobEntry
from poller.domain.jobs.job_schedule import Cadence, Cron

NOW_MS = 1_800_000_030_000


@pytest.mark.parametrize(
    "schedule", [Cadence(60_000), Cron("0 2 * * MON-FRI", "Europe/Amsterdam"), Cron("0 2 L * *")]
)
def test_a_record_can_be_read_back(schedule: Cadence | Cron) -> None:
    job = JobEntry("a", "job.poller", schedule, 5_000)
    assert job_entries.parse(job_entries.record_of(job).job) == job


@pytest.mark.parametrize(
    "terms",
    [
        {},
        {"name": "a", "queue": "q", "delay_ms": 0, "schedule": {"every_ms": 0}},
        {"name": "a", "queue": "q", "delay_ms": 0, "schedule": {"every_ms": "soon"}},
        {"name": "a", "queue": "q", "delay_ms": None, "schedule": {"every_ms": 1000}},
        {"name": "a", "queue": "q", "delay_ms": 0, "schedule": {"cron": "x", "timezone": "UTC"}},
        {"name": "a", "queue": "q", "delay_ms": 0, "schedule": []},
        [],
        None,
    ],
)
def test_a_record_that_no_leader_wrote_is_no_entry(terms: object) -> None:
    assert job_entries.parse(json.dumps(terms)) is None


def test_an_entry_is_due_after_its_delay() -> None:
    """The newest plan whose delay has passed counts as the latest one."""
    job = JobEntry("a", "job.poller", Cadence(60_000), delay_ms=45_000)
    assert job.latest_s(NOW_MS) == 1_799_999_985.0
    assert job.next_s(NOW_MS) == 1_800_000_045.0


@pytest.mark.parametrize("damaged", ["", "[", "[]", "null", '{"total_run_count": "many"}'])
def test_a_damaged_count_of_runs_starts_again(damaged: str) -> None:
    assert json.loads(job_entries.meta(damaged, NOW_MS))["total_run_count"] == 1


def test_the_arguments_are_readable_in_celerys_tools() -> None:
    assert job_messages.shown(["prune", "audit"]) == "(['prune', 'audit'])"
    names = [f"job-{number}" for number in range(12)]
    assert job_messages.shown(names).endswith("'job-9', and 2 more])")
