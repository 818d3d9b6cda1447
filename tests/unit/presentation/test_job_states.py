"""Jobs for people: their state, their place in the verdict, and how often SQL is read for them."""

from __future__ import annotations

import dataclasses
import threading

import pytest
import web_jobs
import web_overviews as fleet

from poller import errors
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import Origin
from poller.presentation import health, job_json, job_states, job_texts
from poller.presentation.health import Level, Stores, Tone
from poller.presentation.job_states import JobsCache, StoredJobs

STATES = {
    "absent": JobState.UNSERVED,
    "broken": JobState.FAILING,
    "busy": JobState.RUNNING,
    "late": JobState.OVERDUE,
    "nightly": JobState.OK,
    "prune": JobState.OK,
    "rested": JobState.PAUSED,
}


def test_each_job_has_its_state_and_next_plan() -> None:
    """A paused job has no next plan; a job is served by the workers of its queue."""
    assert {each.name: each.state for each in web_jobs.LISTED.jobs} == STATES
    assert web_jobs.named("rested").next_plan_ms is None
    assert web_jobs.named("prune").next_plan_ms == 1_794_874_500_000
    assert (web_jobs.named("absent").workers, web_jobs.named("prune").workers) == ([], ["w1@a"])


def test_without_redis_no_job_is_called_unserved() -> None:
    """It is not known which workers run, so only what SQL says is judged."""
    listed = job_states.judge(web_jobs.STORED, None)
    assert {each.state for each in listed.jobs if each.name == "absent"} == {JobState.OVERDUE}
    assert all(each.workers is None for each in listed.jobs)


def test_a_job_that_left_its_package_is_gone() -> None:
    """The word of the list, and no next plan."""
    gone = web_jobs.job("old", gone_ms=web_jobs.NOW_MS)
    [listed] = job_states.judge(StoredJobs(web_jobs.NOW_MS, [gone]), ()).jobs
    assert (listed.state_text, listed.next_plan_ms) == ("gone", None)


@pytest.mark.parametrize(
    ("names", "tone", "text"),
    [
        (("prune", "busy", "rested", "nightly"), Tone.OK, ""),
        (("broken",), Tone.FAILING, "Job broken fails."),
        (("late",), Tone.LATE, "Job late is overdue."),
        (("absent",), Tone.LATE, "Job absent waits: no running worker has its package."),
    ],
)
def test_a_job_in_trouble_is_in_the_verdict(names: tuple[str, ...], tone: Tone, text: str) -> None:
    """Attention, never an alarm: the fleet is polled."""
    verdict = health.judge(fleet.HEALTHY, Stores(jobs=web_jobs.only(*names).jobs))
    expected = "All 98,204 targets answer. Polling is on time."
    assert verdict.text == f"{expected} {text}".rstrip()
    assert verdict.tone is tone
    assert verdict.level is (Level.ATTENTION if text else Level.OK)
    assert verdict.is_ready


def test_many_jobs_are_counted_and_some_are_named() -> None:
    """The sentence stays short with a thousand failing jobs."""
    failing = web_jobs.named("broken")
    jobs = []
    for number in range(1_000):
        job = dataclasses.replace(failing.job, name=f"job{number}")
        jobs.append(dataclasses.replace(failing, job=job))
    verdict = health.judge(fleet.HEALTHY, Stores(jobs=jobs))
    assert verdict.reasons[-1] == "1,000 jobs fail: job0, job1, job2 and 997 more."
    short = job_json.attention(jobs)
    assert (short["total"], short["states"]["failing"], len(short["troubled"])) == (1000, 1000, 20)


def test_without_a_leader_overdue_jobs_are_not_named() -> None:
    """The missing leader explains them; a job that fails is named all the same."""
    stores = Stores(jobs=web_jobs.LISTED.jobs)
    for stopped in (fleet.NO_LEADER, fleet.NO_WORKERS):
        text = health.judge(stopped, stores).text
        assert "Job broken fails." in text
        assert "overdue" not in text
        assert "package" not in text


def test_before_the_first_target_a_failing_job_is_named() -> None:
    """Jobs run without any device."""
    verdict = health.judge(fleet.EMPTY, Stores(jobs=web_jobs.LISTED.jobs))
    assert verdict.text == "Job broken fails. Nothing to poll yet. Three ways to begin:"
    assert (verdict.tone, verdict.level) == (Tone.FAILING, Level.ATTENTION)


class Reader:
    """Counts its reads. Each takes `cost_s`."""

    def __init__(self) -> None:
        self.reads = 0
        self.now = 100.0
        self.cost_s = 0.0
        self.error: errors.StoreError | None = None

    def read(self) -> StoredJobs:
        self.reads += 1
        self.now += self.cost_s
        if self.error:
            raise self.error
        return web_jobs.STORED

    def clock(self) -> float:
        return self.now


def test_many_views_share_one_read() -> None:
    """The page asks every second; SQL is read every other second."""
    reader = Reader()
    cache = JobsCache(reader.read, reader.clock)
    for _ in range(10):
        assert len(cache.get(web_jobs.WORKERS).jobs) == len(STATES)
        reader.now += 1
    assert reader.reads == 5


def test_a_slow_read_is_kept_longer() -> None:
    """A read of half a second is repeated after ten seconds: a twentieth of the time."""
    reader = Reader()
    reader.cost_s = 0.5
    cache = JobsCache(reader.read, reader.clock)
    cache.get(web_jobs.WORKERS)
    reader.now += 9
    cache.get(web_jobs.WORKERS)
    assert reader.reads == 1
    reader.now += 1
    cache.get(web_jobs.WORKERS)
    assert reader.reads == 2


def test_a_worker_that_comes_or_goes_is_seen_at_once() -> None:
    """Heartbeats alone cause no read; another set of served queues does."""
    reader = Reader()
    cache = JobsCache(reader.read, reader.clock)
    cache.get(web_jobs.WORKERS)
    polling = dataclasses.replace(web_jobs.WORKERS[0], polls=9, queues=("poll.snmp", "job.poller"))
    cache.get([polling])
    assert reader.reads == 1
    listed = cache.get(())
    assert {each.state for each in listed.jobs if each.name == "late"} == {JobState.UNSERVED}


def test_an_error_of_sql_is_raised_and_not_kept() -> None:
    """The next view reads again."""
    reader = Reader()
    reader.error = errors.StoreUnavailable("SQL does not answer")
    cache = JobsCache(reader.read, reader.clock)
    with pytest.raises(errors.StoreUnavailable):
        cache.get(None)
    reader.error = None
    assert cache.get(None).jobs


def test_a_silent_database_holds_one_thread_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The thread that reads waits; the others are told so, and leave."""
    monkeypatch.setattr(JobsCache, "PATIENCE_S", 0.01)
    entered, answered = threading.Event(), threading.Event()

    def silent() -> StoredJobs:
        entered.set()
        answered.wait()
        return web_jobs.STORED

    cache = JobsCache(silent)
    reading = threading.Thread(target=cache.get, args=(None,))
    reading.start()
    entered.wait()
    with pytest.raises(errors.StoreUnavailable, match="SQL has not answered"):
        cache.get(None)
    answered.set()
    reading.join()
    assert cache.get(None).jobs


def test_the_fields_of_a_job_and_of_a_run() -> None:
    """What programs read: the same for the command line and the API."""
    item = job_json.jsonable(job_json.item(web_jobs.named("busy")))
    assert (item["state"], item["running_count"], item["last_outcome"]) == ("running", 2, "running")
    holder = item["running"][0]
    assert (holder["runner"], holder["heartbeat_age_seconds"]) == ("w1@a", 3.0)

    item = job_json.jsonable(job_json.item(web_jobs.named("broken")))
    assert (item["next_retry"], item["failures_in_a_row"]) == ("2026-11-17T00:14:12Z", 3)
    assert (item["last_attempt"], item["last_max_attempts"]) == (2, 3)

    run = job_json.jsonable(job_json.run(web_jobs.run("prune"), web_jobs.NOW_MS))
    assert (run["plan"], run["late_seconds"], run["duration_seconds"]) == (
        "2026-11-17T00:11:12Z",
        0.12,
        1.5,
    )
    assert run["heartbeat_age_seconds"] is None
    retried = job_json.run(web_jobs.run("prune", attempt=2), web_jobs.NOW_MS)
    assert retried["late_seconds"] is None, "its message waited for the retry"
    assert job_texts.late(Origin.DEMAND, None) == "by hand"


def test_a_job_that_never_ran_has_empty_fields() -> None:
    """Every field is there, so that a program finds none missing."""
    [listed] = job_states.judge(StoredJobs(web_jobs.NOW_MS, [web_jobs.job("new")]), ()).jobs
    item = job_json.item(listed)
    assert set(item) == set(job_json.item(web_jobs.named("prune")))
    assert item["last_plan"] is None
