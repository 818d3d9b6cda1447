"""What runs, what is due and what came of plans, in the words of the page."""

from __future__ import annotations

import dataclasses

import web_jobs
from web_jobs import MINUTE_MS, NOW_MS

from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_run import JobRun
from poller.presentation.job_states import ListedJob
from poller.web.pages.work import job_activity


def listed(name: str, usual_ms: int | None, *runs: JobRun) -> ListedJob:
    """A job with these runs under way, and what its newest success took."""
    summary = JobSummary(last=runs[0], running=runs, usual_ms=usual_ms)
    return dataclasses.replace(web_jobs.named("busy"), job=web_jobs.job(name), summary=summary)


def test_what_is_longest_over_its_usual_time_comes_first() -> None:
    """A run without a usual time is compared with its time-out."""
    fresh = {"stale_ms": NOW_MS + MINUTE_MS}
    jobs = [
        listed("quick", 60_000, web_jobs.running("quick", **fresh)),
        listed("slow", 10_000, web_jobs.running("slow", **fresh)),
        listed("new", None, web_jobs.running("new", **fresh)),
    ]
    rows = job_activity.running(jobs)
    assert [(row.job, row.tone, row.state) for row in rows] == [
        ("slow", "late", "longer than usual"),
        ("quick", "ok", "running"),
        ("new", "ok", "running"),
    ]
    assert (rows[0].age, rows[0].usual, rows[0].limit) == ("40 s", "10 s", "10 m")
    assert rows[2].usual == "–"


def test_a_run_past_its_time_out_or_without_a_heartbeat_fails() -> None:
    """The one may still end; of the other the runner is gone."""
    began = {"started_ms": NOW_MS - 11 * MINUTE_MS}
    alive = web_jobs.running("sweep", **began, stale_ms=NOW_MS + 1)
    silent = web_jobs.running("tidy", heartbeat_ms=NOW_MS - 61_000, stale_ms=NOW_MS - 1)
    past, gone = job_activity.running([listed("a", None, alive), listed("b", None, silent)])
    assert (past.tone, past.state) == ("failing", "past its time-out")
    assert (gone.tone, gone.state) == ("failing", "abandoned: its runner is silent")
    assert (past.is_silent, gone.is_silent) == (False, True)


def test_ticks_are_runs_and_plans_without_one() -> None:
    """The newest plan first, each with what came of it or why nothing did."""
    runs = [web_jobs.run("prune"), web_jobs.failed("broken", age_ms=9 * MINUTE_MS)]
    rows = job_activity.ticks(web_jobs.LISTED.jobs, runs)
    found = {(row.job, row.outcome): row.text for row in rows}
    assert found["prune", "success"] == "rows=1204"
    assert found["broken", "failed"] == "handler_error: OSError: no route\nto the archive"
    assert found["absent", "skipped"] == "no running worker has acme-jobs 1.2"
    assert found["late", "skipped"] == "no run was started yet"
    assert [row.plan for row in rows] == sorted((row.plan for row in rows), reverse=True)


def test_a_paused_job_and_a_held_lease_are_reasons() -> None:
    """The pause is wanted, so it is no warning; the lease names who holds it."""
    paused = dataclasses.replace(
        web_jobs.named("rested"),
        job=web_jobs.job("rested", paused_ms=NOW_MS - 60 * MINUTE_MS, paused_by="ada"),
    )
    old = web_jobs.running("held", age_ms=20 * MINUTE_MS)
    tones = {
        row.job: (row.tone, row.text)
        for row in job_activity.ticks([paused, listed("held", None, old)], [])
    }
    assert tones["rested"] == ("unknown", "paused by ada")
    assert tones["held"] == ("late", "lease held: w1@a has run global for 40 s")


def test_the_forecast_has_a_bar_for_each_minute() -> None:
    """The highest bar is the fullest minute; a sentence says the same."""
    found = job_activity.forecast(web_jobs.LISTED.jobs, NOW_MS)
    assert len(found.minutes) == job_activity.MINUTES
    assert max(row.height for row in found.minutes) == 100
    assert found.total == sum(row.total for row in found.minutes)
    assert found.sentence.startswith(f"{found.total} plans in the next 15 minutes, the most, ")
    assert job_activity.forecast([], NOW_MS).sentence == "No plan is due in the next 15 minutes."
