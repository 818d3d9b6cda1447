"""Jobs in one process on a real database and a real Redis: planned, run, ended."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
import sqlalchemy as sa

from poller import errors
from poller.bootstrap import Services
from poller.db import database_clock, tables
from poller.db import engine as sql
from poller.db.jobs import job_catalog, job_history, job_ledger
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Status
from poller.domain.jobs.run_message import RunMessage
from poller.domain.jobs.run_totals import RunOutcome
from poller.jobs import api
from poller.jobs.registry import Registry
from poller.presentation import job_states
from poller.settings import Settings
from poller.state.cluster import job_totals
from poller.workers.batch.capacity_lending import CapacityLending
from poller.workers.jobs import job_announcer, job_attempt, job_lease, job_planner
from poller.workers.jobs.job_runner import JobRunner
from tests.conftest import wait_until

QUEUE = "job.acme"
HOUR_MS = 3_600_000
Run = Callable[..., None]


class Bench:
    """A worker's jobs without Celery. Messages that would be published are in `sent`."""

    def __init__(self, services: Services) -> None:
        self.services = services
        self.specs: dict[str, api.JobSpec] = {}
        self.sent: list[tuple[str, RunMessage]] = []
        self.lending = CapacityLending()
        self.runner = self.another("w@test")

    def another(self, name: str) -> JobRunner:
        return JobRunner(self.services, name, self.lending, self.sent.extend)

    def add(self, handler: Any, name: str = "tidy", **terms: Any) -> None:
        """Install a job."""
        self.specs[name] = api.job(**{"every_s": 3600, "name": name, **terms})(handler)
        distributions = dict.fromkeys(self.specs, "Acme 1.0")
        self.services.jobs = Registry(dict(self.specs), distributions)  # type: ignore[misc]

    def message(self, plans: int = 1, job: str = "tidy") -> RunMessage:
        now_ms = database_clock.now_ms(self.services.engine)
        last_ms = now_ms - now_ms % HOUR_MS
        plans_ms = tuple(last_ms - HOUR_MS * back for back in reversed(range(plans)))
        return RunMessage(job, "global", "global", plans_ms, now_ms)

    def run(self, message: RunMessage | None = None) -> JobRun:
        """Run a message, and return the newest row."""
        self.runner.run(message or self.message())
        return self.row()

    def row(self, job: str = "tidy") -> JobRun:
        return job_history.runs(self.services.engine, job)[0]

    def begin(self, message: RunMessage | None = None) -> threading.Thread:
        """Run a message in a thread, as Celery's pool does."""
        thread = threading.Thread(target=self.runner.run, args=(message or self.message(),))
        thread.start()
        return thread

    def change(self, **values: Any) -> None:
        """Change every row, as another runner or the leader would."""
        with sql.writing(self.services.engine) as conn:
            conn.execute(sa.update(tables.job_runs).values(**values))

    def plan(self, *names: str) -> list[RunMessage]:
        """Plan jobs, and return what is published then."""
        self.sent.clear()
        self.runner.plan(names or list(self.specs))
        assert {queue for queue, _ in self.sent} <= {QUEUE}
        return [message for _, message in self.sent]

    def outcomes(self) -> dict[RunOutcome, int]:
        totals = job_totals.read(self.services.redis, self.services.keys)
        return dict(totals["tidy"].outcomes)


@pytest.fixture
def bench(services: Services, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(job_attempt, "GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "STOP_GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(job_lease, "FIRST_PAUSE_S", 0.05)
    return Bench(services)


class Stubborn:
    """A handler that ignores its cancellation until the test ends it."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.over = threading.Event()

    def __call__(self, context: api.Context) -> None:
        self.inside.set()
        while not self.over.is_set():
            try:
                self.over.wait(0.01)
            except api.Cancelled:
                continue


@pytest.fixture
def stubborn() -> Iterator[Stubborn]:
    made = Stubborn()
    yield made
    made.over.set()


class Endless:
    """A handler that runs until it is cancelled."""

    def __init__(self) -> None:
        self.inside = threading.Event()
        self.cancelled = threading.Event()

    def __call__(self, context: api.Context) -> None:
        self.inside.set()
        try:
            while True:
                time.sleep(0.005)
        finally:
            self.cancelled.set()


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


# Planning


def test_each_scope_has_its_message(bench: Bench) -> None:
    """Scopes are listed by the job, with the services and the instant."""

    def sites(services: Any, now: datetime) -> list[tuple[str, str]]:
        assert services is bench.services
        return [("site", "ams"), ("site", "ber"), ("site", "ams")]

    bench.add(lambda context: None, scopes=sites)
    bench.add(lambda context: None, "whole")
    scopes = [(message.job, message.scope_kind, message.scope_id) for message in bench.plan()]
    assert scopes == [
        ("whole", "global", "global"),
        ("tidy", "site", "ams"),
        ("tidy", "site", "ber"),
    ]


def test_a_run_by_hand_of_a_scope_that_does_not_exist_is_refused(bench: Bench) -> None:
    """The handler is not called, the row names the nearest scopes, and the job does not fail."""
    called = []
    names = ["ams", "ber", "cph", "dus", "rot", "rtm", "zrh"]
    bench.add(
        lambda context: called.append(context), scopes=lambda *_: [("site", n) for n in names]
    )
    terms = [bench.specs["tidy"].terms]
    job_catalog.announce(bench.services.engine, QUEUE, "Acme 1.0", terms)

    def by_hand(key: str) -> JobRun:
        message = bench.message()._replace(scope_kind="site", scope_id=key)
        return bench.run(message._replace(origin=Origin.DEMAND))

    run = by_hand("rtmx")
    assert (run.status, run.error_code) == (Status.FAILED, FailureCode.UNKNOWN_SCOPE)
    assert run.next_retry_ms is None
    assert run.message.startswith("it has no scope site:rtmx; it has site:rtm, site:rot, ")
    assert run.message.endswith(" and 2 more")
    assert called == []
    summary = job_history.summaries(bench.services.engine)["tidy"]
    assert (summary.last, summary.failures) == (None, 0)

    assert by_hand("rtm").status is Status.SUCCESS
    bench.add(lambda context: called.append(context), scopes=lambda *_: 1 / 0)
    assert by_hand("ams").status is Status.SUCCESS, "without a list the person decides"
    assert len(called) == 2


def test_broken_scopes_concern_no_other_job(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Exceptions, rubbish, and a function that does not return."""
    over = threading.Event()
    monkeypatch.setattr(bench.runner._planner._calls, "_limit_s", 0.3)

    def fail(*_: Any) -> Any:
        raise SystemExit(1)

    broken: list[Any] = [
        fail,
        lambda *_: 7,
        lambda *_: [("site",)],
        lambda *_: [("", "x")],
        lambda *_: over.wait(20),
    ]
    for number, scopes in enumerate(broken):
        bench.add(lambda context: None, f"bad{number}", scopes=scopes)
    bench.add(lambda context: None, "good", scopes=lambda *_: [("site", "ams")])
    assert [message.job for message in bench.plan()] == ["good"]
    over.set()


def test_a_hook_names_the_plans(bench: Bench) -> None:
    """Those of the future and those up to the newest run are left out."""
    asked: list[Any] = []
    now_ms = database_clock.now_ms(bench.services.engine)
    minute = datetime.fromtimestamp(now_ms // 60_000 * 60, UTC)

    def plans(scope: api.Scope, last: api.LastPlan | None, now: datetime) -> list[datetime]:
        asked.append(last)
        return [minute - timedelta(minutes=2), minute - timedelta(minutes=1), now + timedelta(1)]

    bench.add(lambda context: None, plans=plans)
    [message] = bench.plan()
    assert len(message.plans_ms) == 2
    bench.runner.run(message)
    [message] = bench.plan()
    assert message.plans_ms == (round((minute - timedelta(minutes=1)).timestamp() * 1000),)
    assert asked == [None, api.LastPlan(minute - timedelta(minutes=2), "SUCCESS", 1)]


@pytest.mark.parametrize("plans", [lambda *_: 7, lambda *_: ["now"], lambda *_: 1 / 0])
def test_a_broken_hook_plans_nothing(bench: Bench, plans: Any) -> None:
    """The schedule of the job does not stand in for it."""
    bench.add(lambda context: None, plans=plans)
    assert bench.plan() == []


@pytest.mark.parametrize("what", ["scopes", "plans"])
def test_a_job_that_cannot_be_planned_is_failing_until_it_can(bench: Bench, what: str) -> None:
    """The catalogue has the reason without secrets, for the leader and for people."""
    found: list[Any] = []
    faults = {"now": "the password is hunter22"}
    bench.services.redactor.remember("hunter22")

    def hook(*_: Any) -> Any:
        if faults:
            raise LookupError(*faults.values())
        return found

    bench.add(lambda context: None, **{what: hook})
    engine = bench.services.engine
    job_catalog.announce(engine, QUEUE, "Acme 1.0", [bench.specs["tidy"].terms])

    def state() -> tuple[JobState, str]:
        listed = job_states.of_job(job_catalog.get(engine, "tidy"), job_states.read(engine), None)
        return listed.state, listed.job.planning_fault

    assert bench.plan() == []
    now, fault = state()
    assert now is JobState.FAILING
    assert fault.startswith(f"{what}: LookupError: the password is ")
    assert "hunter22" not in fault
    faults.clear()
    assert bench.plan() == []
    assert state() == (JobState.WAITING, "")


def test_a_job_whose_hook_was_removed_can_be_planned(bench: Bench) -> None:
    """The reason of its former terms no longer holds."""
    bench.add(lambda context: None)
    engine = bench.services.engine
    job_catalog.announce(engine, QUEUE, "Acme 1.0", [bench.specs["tidy"].terms])
    job_catalog.note_planning(engine, "tidy", "scopes: no route")
    assert len(bench.plan()) == 1
    assert job_catalog.get(engine, "tidy").planning_fault == ""


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
