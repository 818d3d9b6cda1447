"""Leases of job runs: lost, kept, given back; a database that is away or silent."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.jobs import job_ledger
from poller.domain.jobs.job_run import FailureCode, Origin, Status
from poller.domain.jobs.run_totals import RunOutcome
from poller.settings import Settings
from poller.workers.jobs import job_attempt, job_lease
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


# The lease


def test_a_lost_lease_cancels_the_handler_and_its_result_is_refused(bench: Bench) -> None:
    """Another runner has the plan: this one writes nothing."""
    endless = Endless()
    bench.add(endless, heartbeat_s=0.05, stale_timeout_s=5)
    thread = bench.begin()
    assert endless.inside.wait(10)
    bench.change(token="another", runner="thief")
    assert endless.cancelled.wait(10)
    thread.join(10)
    run = bench.row()
    assert (run.status, run.runner, run.error_code) == (Status.RUNNING, "thief", "")
    assert bench.outcomes() == {RunOutcome.LEASE_LOST: 1}


def test_a_handler_does_not_begin_with_a_lease_that_is_over(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A process that was paused after its claim: another worker may have run the plan."""
    claim, begun = job_ledger.claim, threading.Event()

    def slow(*arguments: Any) -> Any:
        won = claim(*arguments)
        time.sleep(0.2)
        return won

    monkeypatch.setattr(job_ledger, "claim", slow)
    bench.add(lambda context: begun.set(), heartbeat_s=0.05, stale_timeout_s=0.15)
    bench.runner.run(bench.message(2))
    assert not begun.is_set()
    assert bench.outcomes() == {RunOutcome.LEASE_LOST: 1}
    assert bench.sent == []
    monkeypatch.setattr(job_ledger, "claim", claim)
    job_ledger.close_stale(bench.services.engine)  # as the leader does
    assert bench.run().status is Status.SUCCESS, "the job is not taken for one that hangs"


def test_heartbeats_keep_the_lease(bench: Bench) -> None:
    """A handler may take many times the stale time-out."""
    bench.add(lambda context: time.sleep(0.8), heartbeat_s=0.05, stale_timeout_s=0.4)
    thread = bench.begin()
    while thread.is_alive():
        assert job_ledger.close_stale(bench.services.engine) == []
        time.sleep(0.05)
    assert bench.row().status is Status.SUCCESS


def test_without_a_database_the_lease_runs_out(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No heartbeat is written for the stale time-out: another runner may have the plan by now."""
    endless = Endless()
    bench.add(endless, heartbeat_s=0.05, stale_timeout_s=0.4)

    def away(*_: Any) -> bool:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(job_ledger, "heartbeat", away)
    thread = bench.begin()
    assert endless.cancelled.wait(10)
    thread.join(10)
    assert bench.row().status is Status.RUNNING


def test_a_silent_database_delays_neither_time_limit_nor_lease(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A heartbeat that does not return is no heartbeat."""
    over = threading.Event()
    monkeypatch.setattr(job_ledger, "heartbeat", lambda *_: over.wait(20))
    endless = Endless()
    bench.add(endless, heartbeat_s=0.05, stale_timeout_s=0.4)
    bench.add(Endless(), "other", heartbeat_s=0.05, run_timeout_s=0.2)
    thread = bench.begin()
    bench.runner.run(bench.message(1, "other"))
    assert bench.row("other").error_code == FailureCode.RUN_TIMEOUT
    assert endless.cancelled.wait(10)
    thread.join(10)
    assert bench.row().status is Status.RUNNING
    over.set()


def test_a_result_waits_for_a_database_that_is_away(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is written as long as the lease lasts."""
    succeed, failures = job_ledger.succeed, iter(range(3))

    def flaky(*arguments: Any) -> bool:
        if next(failures, None) is not None:
            raise errors.StoreUnavailable("away")
        return succeed(*arguments)

    monkeypatch.setattr(job_ledger, "succeed", flaky)
    bench.add(lambda context: None)
    assert bench.run().status is Status.SUCCESS


def test_a_result_that_was_written_without_a_reply_counts(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection broke after the commit: the next attempt to write finds the row."""
    succeed, failures = job_ledger.succeed, iter([1])

    def unheard(*arguments: Any) -> bool:
        is_written = succeed(*arguments)
        if next(failures, None) is not None:
            raise errors.StoreUnavailable("away")
        return is_written

    monkeypatch.setattr(job_ledger, "succeed", unheard)
    bench.add(lambda context: None)
    assert bench.run(bench.message(2)).status is Status.SUCCESS
    assert bench.outcomes() == {RunOutcome.SUCCESS: 1}
    assert len(bench.sent) == 1, "the next plan follows"


def test_a_result_is_given_up_with_its_lease(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """The row goes stale, and the leader closes it."""

    def away(*_: Any) -> bool:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(job_ledger, "succeed", away)
    monkeypatch.setattr(job_ledger, "heartbeat", away)
    bench.add(lambda context: None, heartbeat_s=0.05, stale_timeout_s=0.3)
    assert bench.run().status is Status.RUNNING
    assert job_ledger.close_stale(bench.services.engine)


def test_old_messages_of_a_job_that_is_held_back_are_dropped(bench: Bench) -> None:
    """They were in the queue when its runner was lost for the third time. A person may run it."""
    calls: list[int] = []
    bench.add(lambda context: calls.append(1))
    bench.run()
    now_ms = database_clock.now_ms(bench.services.engine)
    lost = {"status": "FAILED", "error_code": "stale_timeout", "losses": 3, "attempt": 3}
    bench.change(**lost, plan_ms=1, finished_ms=now_ms)
    bench.run()
    assert len(calls) == 1
    message = bench.message()._replace(origin=Origin.DEMAND)
    assert bench.run(message).status is Status.SUCCESS
    bench.run(bench.message()._replace(plans_ms=(now_ms,)))
    assert len(calls) == 3


def test_a_claim_without_a_database_ends_the_task(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The slot is free again, and nothing is published."""

    def away(*_: Any) -> Any:
        raise errors.StoreUnavailable("away")

    monkeypatch.setattr(job_ledger, "claim", away)
    bench.add(lambda context: None)
    free = bench.runner.slots._free
    with pytest.raises(errors.StoreUnavailable):
        bench.runner.run(bench.message(2))
    assert bench.runner.slots._free == free
    assert bench.sent == []


# The end of the worker


def test_a_stopping_worker_gives_the_attempt_back(bench: Bench) -> None:
    """The plan is due at once, and its other plans are left to the next firing."""
    endless = Endless()
    bench.add(endless)
    thread = bench.begin(bench.message(3))
    assert endless.inside.wait(10)
    bench.runner.stop()
    assert not endless.cancelled.wait(0.1)
    bench.runner.drain()
    thread.join(10)
    run = bench.row()
    assert (run.status, run.error_code, run.attempt) == (Status.FAILED, FailureCode.CANCELED, 0)
    assert run.next_retry_ms is not None
    assert bench.sent == []
    assert bench.plan() == [], "a stopping worker plans nothing"


def test_an_attempt_whose_handler_goes_on_is_not_given_back(
    bench: Bench, stubborn: Stubborn
) -> None:
    """Two handlers of one plan would run: the row stays until the process ends."""
    bench.add(stubborn)
    thread = bench.begin()
    assert stubborn.inside.wait(10)
    bench.runner.drain()
    thread.join(10)
    assert bench.row().status is Status.RUNNING

    bench.runner.hand_back_unended(5)
    run = bench.row()
    assert (run.status, run.error_code, run.attempt) == (Status.FAILED, FailureCode.CANCELED, 0)
    assert run.next_retry_ms is not None
    assert bench.outcomes() == {RunOutcome.CANCELED: 1}


def test_the_end_of_a_process_takes_no_success_back_and_waits_for_no_database(
    bench: Bench, stubborn: Stubborn, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A run that ended is not touched; a silent database holds the end for a moment only."""
    bench.add(lambda context: None)
    assert bench.run().status is Status.SUCCESS
    bench.runner.hand_back_unended(5)
    assert bench.row().status is Status.SUCCESS

    bench.add(stubborn, "other")
    bench.begin(bench.message(job="other"))
    assert stubborn.inside.wait(10)
    silence = threading.Event()
    monkeypatch.setattr(job_ledger, "give_back", lambda *_: silence.wait(10))
    bench.runner.hand_back_unended(0.05)  # in a cold shutdown: its thread still waits for it
    assert bench.row("other").status is Status.RUNNING
    silence.set()
    bench.runner.drain()


def test_a_run_that_waits_for_a_slot_is_left_to_another_worker(
    bench: Bench, stubborn: Stubborn
) -> None:
    """Its message is published again as it was."""
    bench.services.settings = Settings(worker_jobs=1)
    bench.runner = bench.another("w@test")
    bench.runner.slots.attach(lambda _: None)
    bench.add(stubborn)
    bench.add(lambda context: None, "other")
    first = bench.begin()
    assert stubborn.inside.wait(10)
    message = bench.message(2, "other")
    second = bench.begin(message)
    wait_until(lambda: bench.runner.slots.is_paused, "it waits")
    bench.runner.drain()
    second.join(10)
    first.join(10)
    assert bench.sent == [(QUEUE, message)]
