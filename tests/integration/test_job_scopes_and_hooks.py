"""Scopes of jobs and their hooks that name plans."""

from __future__ import annotations

import threading
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db import database_clock
from poller.db.jobs import job_catalog, job_history
from poller.domain.jobs.job_health import JobState
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Status
from poller.jobs import api
from poller.presentation import job_states
from poller.workers.jobs import job_attempt, job_lease
from tests.integration.job_benches import QUEUE, Bench


@pytest.fixture
def bench(services: Services, monkeypatch: pytest.MonkeyPatch) -> Bench:
    monkeypatch.setattr(job_attempt, "GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "STOP_GRACE_S", 0.3)
    monkeypatch.setattr(job_attempt, "FIRST_PAUSE_S", 0.05)
    monkeypatch.setattr(job_lease, "FIRST_PAUSE_S", 0.05)
    return Bench(services)


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
