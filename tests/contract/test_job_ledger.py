"""The ledger of jobs: one runner per plan, guarded by a token, by the database's clock alone."""

from __future__ import annotations

import math
import multiprocessing
import threading
import time
from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import database_clock, tables
from poller.db import engine as sql
from poller.db.jobs import job_catalog, job_history, job_ledger
from poller.db.jobs.job_ledger import Claim, Claimed
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Plan, Status
from poller.domain.jobs.job_schedule import Cadence
from poller.domain.jobs.job_terms import JobTerms

TERMS = JobTerms("tidy", Cadence(60_000), overlap=True)
MINUTE_MS = 60_000
PLAN = Plan("tidy", "global", "global", 30_000_000 * MINUTE_MS)


def later(minutes: int) -> Plan:
    return PLAN._replace(plan_ms=PLAN.plan_ms + minutes * MINUTE_MS)


def claim(engine: Engine, plan: Plan = PLAN, terms: JobTerms = TERMS, runner: str = "r1") -> Claim:
    return job_ledger.claim(engine, plan, terms, runner, PLAN.plan_ms + 5)


def change(engine: Engine, **values: Any) -> None:
    with sql.writing(engine) as conn:
        conn.execute(sa.update(tables.job_runs).values(**values))


def abandon(engine: Engine) -> None:
    """Let every lease be stale, as if no heartbeat had come for long."""
    change(engine, stale_ms=database_clock.now_ms(engine) - 1)


def only(engine: Engine) -> JobRun:
    [run] = job_history.runs(engine)
    return run


def fail(engine: Engine, won: Claim, retry_in_s: float | None = 0.0, message: str = "no") -> bool:
    code = FailureCode.HANDLER_ERROR
    return job_ledger.fail(engine, won.run_id, won.token, code, message, retry_in_s)


def succeed(engine: Engine, won: Claim, details: Any = None) -> bool:
    return job_ledger.succeed(engine, won.run_id, won.token, 7, details or {})


def test_a_plan_that_was_won_is_running_under_a_fresh_lease(engine: Engine) -> None:
    """The times of the row come from the database's clock within the claim."""
    before_ms = database_clock.now_ms(engine)
    won = claim(engine)
    after_ms = database_clock.now_ms(engine)
    run = only(engine)
    assert (won.outcome, won.run_id, won.attempt) == (Claimed.WON, run.id, 1)
    assert (run.plan, run.status, run.origin, run.runner) == (
        PLAN,
        Status.RUNNING,
        Origin.SCHEDULE,
        "r1",
    )
    assert before_ms <= run.started_ms <= after_ms
    assert run.heartbeat_ms == run.started_ms
    assert run.stale_ms == run.started_ms + 60_000
    assert (run.attempt, run.max_attempts, run.dispatched_ms) == (1, 3, PLAN.plan_ms + 5)
    assert (run.finished_ms, run.duration_ms, run.next_retry_ms) == (None, None, None)
    assert (run.result, run.error_code, run.message) == ({}, "", "")


def test_one_of_eight_runners_wins(engine: Engine) -> None:
    """Eight threads claim the same plan at once: one wins, seven are conflicted, none steals."""
    together = threading.Barrier(8)
    claims: dict[str, Claim] = {}

    def work(runner: str) -> None:
        together.wait()
        claims[runner] = claim(engine, runner=runner)

    threads = [threading.Thread(target=work, args=(f"r{number}",)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    outcomes = Counter(each.outcome for each in claims.values())
    assert outcomes == {Claimed.WON: 1, Claimed.CONFLICTED: 7}
    [winner] = [runner for runner, each in claims.items() if each.outcome is Claimed.WON]
    assert only(engine).runner == winner


def test_a_stolen_run_has_a_new_token_and_the_old_writer_is_refused(engine: Engine) -> None:
    """A stale lease goes to another runner: same row, next attempt, and the old token is void."""
    old = claim(engine)
    abandon(engine)
    new = claim(engine, runner="r2")
    assert (new.outcome, new.run_id, new.attempt) == (Claimed.STOLEN, old.run_id, 2)
    assert new.token != old.token

    assert not job_ledger.heartbeat(engine, old.run_id, old.token, 60)
    assert not succeed(engine, old)
    assert not fail(engine, old)
    assert not job_ledger.give_back(engine, old.run_id, old.token)
    assert (only(engine).status, only(engine).runner) == (Status.RUNNING, "r2")

    assert succeed(engine, new, {"kept": True})
    run = only(engine)
    assert (run.status, run.attempt, run.rows_affected) == (Status.SUCCESS, 2, 7)
    assert run.result == {"kept": True}


def test_a_failed_run_is_claimed_again_when_its_time_has_come(engine: Engine) -> None:
    """Before its time a retry is conflicted; afterwards the row starts its next attempt afresh."""
    fail(engine, claim(engine), retry_in_s=60)
    run = only(engine)
    assert run.finished_ms is not None
    assert run.next_retry_ms == pytest.approx(run.finished_ms + 60_000, abs=5)
    assert claim(engine).outcome is Claimed.CONFLICTED

    change(engine, next_retry_ms=database_clock.now_ms(engine))
    again = claim(engine)
    run = only(engine)
    assert (again.outcome, again.attempt) == (Claimed.STOLEN, 2)
    assert (run.status, run.error_code, run.message) == (Status.RUNNING, "", "")
    assert (run.finished_ms, run.duration_ms, run.next_retry_ms) == (None, None, None)
    assert run.stale_ms > database_clock.now_ms(engine)


def test_a_run_without_attempts_left_is_not_claimed_again(engine: Engine) -> None:
    """The last attempt gets no retry time, and a row with one would not be claimed either."""
    terms = replace(TERMS, max_attempts=2)
    fail(engine, claim(engine, terms=terms))
    fail(engine, claim(engine, terms=terms))
    assert (only(engine).attempt, only(engine).next_retry_ms) == (2, None)
    change(engine, next_retry_ms=1)
    assert claim(engine, terms=terms).outcome is Claimed.CONFLICTED


def test_a_failure_without_retry_stays_failed(engine: Engine) -> None:
    """An empty list of delays means no retry, although attempts are left."""
    fail(engine, claim(engine), retry_in_s=None)
    assert only(engine).next_retry_ms is None
    assert claim(engine).outcome is Claimed.CONFLICTED


def test_a_plan_that_succeeded_is_not_run_again(engine: Engine) -> None:
    """A message that comes twice, or late, finds the row and does nothing."""
    succeed(engine, claim(engine))
    assert claim(engine).outcome is Claimed.CONFLICTED


def test_heartbeats_extend_the_lease(engine: Engine) -> None:
    """A heartbeat counts from now by the database's clock, also when it comes late."""
    won = claim(engine)
    abandon(engine)
    assert job_ledger.heartbeat(engine, won.run_id, won.token, 30)
    run = only(engine)
    assert run.stale_ms == pytest.approx(run.heartbeat_ms + 30_000, abs=5)
    assert claim(engine, runner="r2").outcome is Claimed.CONFLICTED


def test_a_stale_lease_is_not_extended_beside_the_next_plan(engine: Engine) -> None:
    """Two handlers of a scope would run at once, each with its lease."""
    terms = replace(TERMS, overlap=False)
    held = claim(engine, terms=terms)
    abandon(engine)
    assert claim(engine, later(1), terms).outcome is Claimed.WON
    assert not job_ledger.heartbeat(engine, held.run_id, held.token, 60)
    assert succeed(engine, held)  # its work is done, and no other runner has its plan


def test_abandoned_runs_are_closed_and_due_again(engine: Engine) -> None:
    """The row of a lost runner ends as FAILED `stale_timeout`, with its next attempt due now."""
    claim(engine)
    assert job_ledger.close_stale(engine) == []
    abandon(engine)
    [closed] = job_ledger.close_stale(engine)
    assert closed == only(engine)
    assert (closed.status, closed.error_code) == (Status.FAILED, FailureCode.STALE_TIMEOUT)
    assert closed.next_retry_ms is not None
    assert closed.finished_ms is not None
    assert job_ledger.close_stale(engine) == []
    assert claim(engine).attempt == 2


@pytest.mark.parametrize("terms", [replace(TERMS, reentrant=False), replace(TERMS, max_attempts=1)])
def test_an_abandoned_run_that_may_not_be_repeated_stays_closed(
    engine: Engine, terms: JobTerms
) -> None:
    """A job that is not re-entrant, or has no attempt left, is closed and left to a person."""
    claim(engine, terms=terms)
    abandon(engine)
    assert claim(engine, terms=terms).outcome is Claimed.CONFLICTED
    [closed] = job_ledger.close_stale(engine)
    assert closed.next_retry_ms is None
    assert claim(engine, terms=terms).outcome is Claimed.CONFLICTED


def test_leases_and_retries_follow_a_clock_that_was_set_back(engine: Engine) -> None:
    """A lease begins again, as long as it was, and is lost after that; a retry is due."""
    year_ms = 365 * 86_400_000
    held = claim(engine)
    change(
        engine,
        heartbeat_ms=tables.job_runs.c.heartbeat_ms + year_ms,
        stale_ms=tables.job_runs.c.stale_ms + year_ms,
    )
    assert job_ledger.close_stale(engine) == []
    run = only(engine)
    assert 59_000 <= run.stale_ms - database_clock.now_ms(engine) <= 60_000
    assert job_ledger.heartbeat(engine, held.run_id, held.token, 60)

    fail(engine, held, retry_in_s=60)
    assert job_ledger.close_stale(engine) == []
    assert claim(engine).outcome is Claimed.CONFLICTED  # a retry of the future stays one
    change(
        engine,
        finished_ms=tables.job_runs.c.finished_ms + year_ms,
        next_retry_ms=tables.job_runs.c.next_retry_ms + year_ms,
    )
    assert job_ledger.close_stale(engine) == []
    assert claim(engine).outcome is Claimed.STOLEN


def test_a_person_lets_a_closed_plan_run_once_more(engine: Engine) -> None:
    """`allow_again` makes a failed plan due, with one more attempt if none is left."""
    terms = replace(TERMS, reentrant=False, max_attempts=1)
    assert not job_ledger.allow_again(engine, PLAN)
    claim(engine, terms=terms)
    assert not job_ledger.allow_again(engine, PLAN)
    abandon(engine)
    job_ledger.close_stale(engine)

    assert job_ledger.allow_again(engine, PLAN)
    assert only(engine).max_attempts == 2
    again = claim(engine, terms=terms)
    assert (again.outcome, again.attempt) == (Claimed.STOLEN, 2)
    assert succeed(engine, again)
    assert not job_ledger.allow_again(engine, PLAN)


def test_a_stopping_worker_gives_the_attempt_back(engine: Engine) -> None:
    """The row is FAILED `canceled`, due at once, and the next runner has the same attempt."""
    won = claim(engine)
    assert job_ledger.give_back(engine, won.run_id, won.token)
    run = only(engine)
    assert (run.status, run.error_code, run.attempt) == (
        Status.FAILED,
        FailureCode.CANCELED,
        0,
    )
    again = claim(engine)
    assert (again.outcome, again.attempt) == (Claimed.STOLEN, 1)


def test_plans_of_a_scope_do_not_overlap_unless_allowed(engine: Engine) -> None:
    """While one plan runs, others of its scope are busy; other scopes and jobs are not."""
    terms = replace(TERMS, overlap=False)
    first = claim(engine, terms=terms)
    assert claim(engine, later(1), terms).outcome is Claimed.BUSY
    assert claim(engine, later(-1), terms).outcome is Claimed.BUSY
    assert claim(engine, PLAN, terms).outcome is Claimed.CONFLICTED
    assert claim(engine, later(1)._replace(scope_id="site 2"), terms).outcome is Claimed.WON
    assert claim(engine, later(1)._replace(job="other"), terms).outcome is Claimed.WON

    succeed(engine, first)
    assert claim(engine, later(1), terms).outcome is Claimed.WON
    # A plan that is done stays so while another one runs: the next of the chain may be tried.
    assert claim(engine, PLAN, terms).outcome is Claimed.CONFLICTED


def test_a_plan_that_was_held_up_is_busy_although_the_other_run_ends_meanwhile(
    engine: Engine,
) -> None:
    """As a conflict it would be left out for ever: its chain would go on with the next plan."""
    terms = replace(TERMS, overlap=False)
    claim(engine, terms=terms)

    def end(conn: sa.Connection, _cursor: Any, statement: str, *_: Any) -> None:
        if statement.startswith("INSERT INTO job_runs"):
            conn.execute(sa.update(tables.job_runs).values(status=Status.SUCCESS.value))

    sa.event.listen(engine, "after_cursor_execute", end)
    try:
        assert claim(engine, later(1), terms).outcome is Claimed.BUSY
    finally:
        sa.event.remove(engine, "after_cursor_execute", end)
    assert claim(engine, later(1), terms).outcome is Claimed.WON


@pytest.mark.parametrize("overlap", [False, True])
def test_no_plan_of_a_paused_job_starts_unless_a_person_asks(engine: Engine, overlap: bool) -> None:
    """Messages that were sent before the pause, chains too, start nothing; nothing is lost."""
    terms = replace(TERMS, overlap=overlap)
    job_catalog.announce(engine, "job.acme", "acme 1", [terms])
    fail(engine, claim(engine, terms=terms))
    job_catalog.pause(engine, "tidy", "me")
    assert claim(engine, PLAN, terms).outcome is Claimed.BUSY
    assert claim(engine, later(1), terms).outcome is Claimed.BUSY

    demand = job_ledger.claim(engine, later(2), terms, "r1", 5, Origin.DEMAND)
    assert demand.outcome is Claimed.WON
    succeed(engine, demand)
    job_catalog.resume(engine, "tidy")
    assert claim(engine, PLAN, terms).outcome is Claimed.STOLEN


def test_a_plan_that_a_person_ran_is_not_named_again(engine: Engine) -> None:
    """The schedule finds it done, and takes it for its own run of that plan."""
    plan = PLAN._replace(plan_ms=MINUTE_MS)
    demand = job_ledger.claim(engine, plan, TERMS, "r1", 5, Origin.DEMAND)
    succeed(engine, demand)
    assert job_history.planning(engine, [plan[:3]])[plan[:3]].newest is None
    assert claim(engine, plan).outcome is Claimed.CONFLICTED
    newest = job_history.planning(engine, [plan[:3]])[plan[:3]].newest
    assert newest is not None
    assert newest.plan_ms == MINUTE_MS
    assert only(engine).status is Status.SUCCESS


def test_a_due_retry_waits_for_the_running_plan_of_its_scope(engine: Engine) -> None:
    """A retry is busy as a new plan is; a stale run stands in nothing's way."""
    terms = replace(TERMS, overlap=False)
    fail(engine, claim(engine, terms=terms))
    assert claim(engine, later(1), terms).outcome is Claimed.WON
    assert claim(engine, PLAN, terms).outcome is Claimed.BUSY
    abandon(engine)
    assert claim(engine, PLAN, terms).outcome is Claimed.STOLEN


def test_only_one_of_many_plans_of_a_scope_starts(engine: Engine) -> None:
    """Eight threads claim eight plans of a scope without overlap at once: one runs."""
    together = threading.Barrier(8)
    outcomes: list[Claimed] = []

    def work(number: int) -> None:
        together.wait()
        terms = replace(TERMS, overlap=False)
        outcomes.append(claim(engine, later(number), terms).outcome)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert Counter(outcomes) == {Claimed.WON: 1, Claimed.BUSY: 7}


class Hostile:
    """An object that refuses to be shown."""

    def __str__(self) -> str:
        raise SystemExit("no")


CYCLE: dict[str, Any] = {"name": "loop"}
CYCLE["again"] = [CYCLE]


UNRULY: dict[str, Any] = {
    "long text": {"text": "x" * 1_000_000},
    "wide characters": {"text": "é漢🙂" * 100_000},
    "many keys": {f"key {number}": number for number in range(100_000)},
    "long list": {"list": list(range(100_000))},
    "no JSON": {"nan": math.nan, "inf": math.inf, "huge": 10**5000, "bytes": b"\xff\x00"},
    "characters": {"nul": "a\0b", "half": "\ud800", "nul\0": 1},
    "keys": {1: "number", None: "none", ("a", 1): "tuple"},
    "cycle": CYCLE,
    "hostile": {"hostile": Hostile(), Hostile(): 1},
    "no mapping": ["a list"],
    "nothing": None,
}


def test_a_run_ends_well_whatever_its_details_are(engine: Engine) -> None:
    """Details that are too large, or no JSON, never keep the row from its terminal status."""
    for number, details in enumerate(UNRULY.values()):
        won = claim(engine, later(number))
        assert job_ledger.succeed(engine, won.run_id, won.token, 10**30, details)
    stored = job_history.runs(engine)
    assert len(stored) == len(UNRULY)
    assert {run.status for run in stored} == {Status.SUCCESS}
    assert all(isinstance(run.result, dict) for run in stored)


@pytest.mark.parametrize("text", ["x" * 9_000, "漢" * 9_000, "a\0b\ud800c" * 2_000, ""])
def test_the_message_of_a_failure_is_cut_at_characters(engine: Engine, text: str) -> None:
    """A message has at most 4,000 characters, whole ones, and none that a database refuses."""
    assert fail(engine, claim(engine), message=text)
    run = only(engine)
    assert run.status is Status.FAILED
    assert len(run.message) == min(len(text), 4_000)


@pytest.mark.parametrize("minutes", [-10, 10])
def test_the_clock_of_a_worker_decides_nothing(
    engine: Engine, monkeypatch: pytest.MonkeyPatch, minutes: int
) -> None:
    """A worker whose clock is ten minutes wrong makes the same leases, and closes none."""
    right = time.time
    now_ms = database_clock.now_ms(engine)
    with monkeypatch.context() as wrong:
        wrong.setattr(time, "time", lambda: right() + minutes * 60)
        won = claim(engine)
        assert job_ledger.heartbeat(engine, won.run_id, won.token, 60)
        assert job_ledger.close_stale(engine) == []
        run = only(engine)
        assert run.started_ms == pytest.approx(now_ms, abs=30_000)
        assert run.stale_ms == pytest.approx(now_ms + 60_000, abs=30_000)
        fail(engine, won, retry_in_s=300)
        assert claim(engine).outcome is Claimed.CONFLICTED
    assert only(engine).finished_ms == pytest.approx(now_ms, abs=30_000)


PROCESSES, PLANS = 20, 500


def race(url: str, ready: Any, tally: Any) -> None:
    """Claim every plan, count the claims that were not refused, and end each run well."""
    sql.BUSY_TIMEOUT_S = 60  # a machine with other work may keep a writer waiting for long
    engine = sql.create(url)
    job_history.runs(engine, limit=1)
    ready.wait(60)
    counts: Counter[str] = Counter()
    for number in range(PLANS):
        taken = job_ledger.claim(engine, later(number), TERMS, "racer", 0)
        counts[taken.outcome.value] += 1
        if taken.outcome is not Claimed.CONFLICTED:
            assert job_ledger.succeed(engine, taken.run_id, taken.token, 1, {})
    tally.put(counts)
    engine.dispose()


@pytest.mark.alone
def test_twenty_processes_race_for_500_plans_and_each_runs_once(
    engine: Engine, upgraded_url: str
) -> None:
    """Every plan is won by exactly one process, and no process meets an error."""
    # New processes as with `spawn`, but the imports are made once and not twenty times.
    server = multiprocessing.get_context("forkserver")
    server.set_forkserver_preload(["poller.db.jobs.job_history", "psycopg", "pytest"])
    ready, tally = server.Barrier(PROCESSES), server.Queue()
    racers = [
        server.Process(target=race, args=(upgraded_url, ready, tally), daemon=True)
        for _ in range(PROCESSES)
    ]
    for racer in racers:
        racer.start()
    for racer in racers:
        racer.join(300)
    assert {racer.exitcode for racer in racers} == {0}
    total = sum((tally.get(timeout=5) for _ in racers), Counter())
    assert total == {Claimed.WON: PLANS, Claimed.CONFLICTED: PLANS * (PROCESSES - 1)}
    runs = job_history.runs(engine, limit=2 * PLANS)
    assert len({run.plan for run in runs}) == len(runs) == PLANS
    assert {(run.status, run.attempt) for run in runs} == {(Status.SUCCESS, 1)}
