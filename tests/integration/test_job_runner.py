"""Jobs in one process on a real database and a real Redis: planned, run, ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_history
from poller.domain.jobs.job_run import FailureCode, Origin, Status
from poller.domain.jobs.run_totals import RunOutcome
from poller.jobs import api
from poller.settings import Settings
from poller.state.cluster import job_totals
from poller.workers.jobs import job_announcer, job_attempt, job_lease, job_planner
from tests.conftest import wait_until
from tests.integration.job_benches import QUEUE, Bench, Endless, Stubborn


@pytest.fixture
def bench(services: Services, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(job_attempt, "GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "STOP_GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(job_lease, "FIRST_PAUSE_S", 0.05)
    return Bench(services)


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    made = Stubborn()
    yield made
    made.over.set()


# From the plan to the row


def test_a_due_plan_is_planned_run_and_not_planned_again(bench: Bench) -> None:
    """One message, one row, and nothing more for this plan."""
    bench.add(lambda context: api.Result(3, {"plan": context.plan.isoformat()}))
    [message] = bench.plan()
    run = bench.run(message)
    assert (run.status, run.attempt, run.rows_affected) == (Status.SUCCESS, 1, 3)
    assert (run.runner, run.dispatched_ms) == ("w@test", message.dispatched_ms)
    plan = datetime.fromtimestamp(message.plan.plan_ms / 1000, UTC)
    assert run.result == {"plan": plan.isoformat()}
    assert bench.plan() == []
    assert bench.outcomes() == {RunOutcome.SUCCESS: 1}
    totals = job_totals.read(bench.services.redis, bench.services.keys)["tidy"]
    assert totals.starts == 1


def test_the_other_plans_of_a_message_are_published_one_by_one(bench: Bench) -> None:
    """Each plan is its own task, in order; a plan that is done already is passed over."""
    bench.add(lambda context: None)
    message = bench.message(3)
    bench.run(message._replace(plans_ms=message.plans_ms[1:2]))
    bench.run(message)
    while bench.sent:
        queue, rest = bench.sent.pop(0)
        assert queue == QUEUE
        bench.runner.run(rest)
    plans = [run.plan.plan_ms for run in job_history.runs(bench.services.engine, "tidy")]
    assert sorted(plans) == list(message.plans_ms)


def test_a_busy_scope_ends_the_chain(bench: Bench) -> None:
    """An older plan of the scope runs: the others are planned again when it has ended."""
    endless = Endless()
    bench.add(endless)
    message = bench.message(3)
    thread = bench.begin(message._replace(plans_ms=message.plans_ms[:1]))
    assert endless.inside.wait(10)
    bench.runner.run(message._replace(plans_ms=message.plans_ms[1:]))
    assert bench.sent == []
    assert len(job_history.runs(bench.services.engine, "tidy")) == 1
    bench.runner.drain()
    thread.join(10)


def test_a_job_that_is_not_installed_here_is_passed_over(bench: Bench) -> None:
    """An older release of its package may be on this worker."""
    bench.runner.run(bench.message(2, "unheard-of"))
    assert bench.plan("unheard-of") == []
    assert bench.sent == []


# Failures


def test_a_failed_run_has_its_retry_and_no_secret(bench: Bench) -> None:
    """The delay is that of the attempt; the last attempt has no retry."""

    def fail(context: api.Context) -> None:
        raise ValueError("wrong password hunter22")

    bench.services.redactor.remember("hunter22")
    bench.add(fail, max_attempts=2, retry_delays_s=[100])
    message = bench.message()
    run = bench.run(message)
    assert (run.status, run.error_code) == (Status.FAILED, FailureCode.HANDLER_ERROR)
    assert "ValueError: wrong password" in run.message
    assert "hunter22" not in run.message
    assert run.next_retry_ms is not None
    assert 90_000 < run.next_retry_ms - database_clock.now_ms(bench.services.engine) <= 100_000

    bench.runner.run(message)
    assert bench.row().attempt == 1, "its retry is not due yet"
    bench.change(next_retry_ms=0)
    run = bench.run(message)
    assert (run.attempt, run.next_retry_ms) == (2, None)
    assert bench.outcomes() == {RunOutcome.RETRIED: 1, RunOutcome.FAILED: 1}


def test_the_details_of_a_result_have_no_secret(bench: Bench) -> None:
    """Neither in texts and names at any depth, nor under names of secrets."""
    bench.services.redactor.remember("hunter22")
    details = {
        "hosts": ["snmp://me:hidden@r1", {"hunter22": 3, "text": "it was hunter22"}],
        "password": "short",
        "rows": 7,
    }
    bench.add(lambda context: details)
    run = bench.run()
    assert run.status is Status.SUCCESS
    assert run.result == {
        "hosts": ["snmp://me:********@r1", {"********": 3, "text": "it was ********"}],
        "password": "********",
        "rows": 7,
    }


def test_a_handler_that_leaves_the_process_is_a_panic(bench: Bench) -> None:
    """The worker goes on."""

    def leave(context: api.Context) -> None:
        raise SystemExit(1)

    bench.add(leave)
    assert bench.run().error_code == FailureCode.HANDLER_PANIC


def test_a_result_that_cannot_be_stored_is_a_failure(bench: Bench) -> None:
    """Objects of a plugin may raise whenever they are looked at."""

    class Bomb(dict[str, Any]):
        def __iter__(self) -> Any:
            raise RuntimeError("boom")

        def items(self) -> Any:
            raise RuntimeError("boom")

        def __len__(self) -> int:
            raise RuntimeError("boom")

        def __repr__(self) -> str:
            raise RuntimeError("boom")

    bench.add(lambda context: {"inner": Bomb()})
    assert bench.run().status is not Status.RUNNING


def test_a_run_ends_at_its_time_limit(bench: Bench) -> None:
    """The handler is cancelled; the failure is retried like any other."""
    endless = Endless()
    bench.add(endless, run_timeout_s=0.2)
    run = bench.run()
    assert run.error_code == FailureCode.RUN_TIMEOUT
    assert run.message == "it was cancelled after 0.2 s"
    assert run.next_retry_ms is not None
    assert endless.cancelled.is_set()


def test_a_job_that_hangs_is_not_run_again_here_and_delays_no_other_job(
    bench: Bench, stubborn: Stubborn
) -> None:
    """The run is over for the ledger and for Celery; only the thread of the handler is left."""
    bench.services.settings = Settings(worker_jobs=1)
    bench.runner = bench.another("w@test")
    bench.add(stubborn, run_timeout_s=0.2, retry_delays_s=[0.0])
    bench.add(lambda context: None, "other")
    failed = bench.run()
    assert failed.error_code == FailureCode.RUN_TIMEOUT
    assert "did not end within" in failed.message
    assert bench.runner.running == 0

    for _ in range(3):
        assert bench.run() == failed  # its retry is left to another worker
    bench.runner.run(bench.message(1, "other"))
    assert bench.row("other").status is Status.SUCCESS

    stubborn.over.set()
    wait_until(lambda: bench.run().status is Status.SUCCESS, "it is run again when it has ended")
    assert bench.row().attempt == 2


def test_a_paused_job_is_not_planned(bench: Bench) -> None:
    """Until a person resumes it."""
    bench.add(lambda context: None)
    engine = bench.services.engine
    job_catalog.announce(engine, QUEUE, "Acme 1.0", [bench.specs["tidy"].terms])
    job_catalog.pause(engine, "tidy", "ops")
    assert bench.plan() == []
    job_catalog.resume(engine, "tidy")
    assert len(bench.plan()) == 1


def test_a_long_queue_gets_no_further_messages(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every firing would add the same plans again while no worker takes them."""
    monkeypatch.setattr(job_planner, "LONGEST_QUEUE", 2)
    bench.add(lambda context: None)
    bench.services.redis.rpush(QUEUE, "a", "b", "c")
    assert bench.plan() == []
    bench.services.redis.delete(QUEUE)
    assert len(bench.plan()) == 1


def test_planning_is_bounded(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Names that come while all planners are busy are left to them."""
    monkeypatch.setattr(job_planner, "MOST_PLANNERS", 1)
    inside, over = threading.Event(), threading.Event()

    def slow(*_: Any) -> list[tuple[str, str]]:
        inside.set()
        assert over.wait(20)
        return [("site", "ams")]

    bench.add(lambda context: None, "slow", scopes=slow)
    bench.add(lambda context: None, "quick")
    thread = threading.Thread(target=bench.runner.plan, args=(["slow"],))
    thread.start()
    assert inside.wait(10)
    assert bench.lending._jobs == 1, "a planner lends its place"
    bench.runner.plan(["quick"])
    assert bench.sent == []
    over.set()
    thread.join(10)
    assert [message.job for _, message in bench.sent] == ["slow", "quick"]


def test_a_run_on_demand_is_not_a_plan_of_the_schedule(bench: Bench) -> None:
    """The latest plan is due all the same."""
    bench.add(lambda context: None)
    now_ms = database_clock.now_ms(bench.services.engine)
    demand = bench.message()._replace(plans_ms=(now_ms,), origin=Origin.DEMAND)
    assert bench.run(demand).origin is Origin.DEMAND
    assert len(bench.plan()) == 1


# The announcement


def test_jobs_are_announced_as_soon_as_the_database_answers(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing waits for it, and a row that was lost comes back."""
    monkeypatch.setattr(job_announcer, "AGAIN_S", 0.05)
    monkeypatch.setattr(job_announcer, "FIRST_PAUSE_S", 0.05)
    announce, failures = job_catalog.announce, iter([errors.StoreUnavailable("away"), ValueError()])

    def flaky(*arguments: Any) -> None:
        failure = next(failures, None)
        if failure is not None:
            raise failure
        announce(*arguments)

    monkeypatch.setattr(job_catalog, "announce", flaky)
    bench.add(lambda context: None)
    stopping = threading.Event()
    engine = bench.services.engine

    def names() -> list[str]:
        return [job.name for job in job_catalog.listing(engine)]

    job_announcer.JobAnnouncer(bench.services, stopping).start()
    wait_until(lambda: names() == ["tidy"], "the announcement")
    job_catalog.forget(engine, "tidy")
    wait_until(lambda: names() == ["tidy"], "the next announcement")
    stopping.set()


def test_a_worker_without_job_slots_announces_nothing(bench: Bench) -> None:
    """It takes no jobs."""
    bench.services.settings = Settings(worker_jobs=0)
    bench.add(lambda context: None)
    job_announcer.JobAnnouncer(bench.services, threading.Event()).start()
    assert not any(thread.name == "job-announcer" for thread in threading.enumerate())
