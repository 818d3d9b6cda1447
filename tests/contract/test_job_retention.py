"""Runs of jobs past their retention are removed; running ones and the planner's memory stay."""

from __future__ import annotations

import math
import time

import pytest
import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db.jobs import job_retention
from poller.db.jobs.job_retention import JobsPruned
from poller.db.record import row_gaps
from poller.db.tables import job_runs, jobs

DAY = 86_400_000
NOW = 1_800_000_000_000
BEFORE = NOW - 30 * DAY


def prune(engine: Engine, seconds: float = math.inf) -> JobsPruned:
    until_mono = time.monotonic() + seconds
    return job_retention.prune(engine, BEFORE, rest=lambda _: None, until_mono=until_mono)


def add_run(engine: Engine, days_ago: int, job: str = "tidy", **changes: object) -> None:
    at_ms = NOW - days_ago * DAY
    row = {
        "job": job,
        "scope_kind": "global",
        "scope_id": "global",
        "plan_ms": at_ms,
        "origin": "schedule",
        "status": "SUCCESS",
        "attempt": 1,
        "max_attempts": 3,
        "reentrant": True,
        "runner": "here",
        "token": "t",
        "dispatched_ms": at_ms,
        "started_ms": at_ms,
        "heartbeat_ms": at_ms,
        "stale_ms": at_ms,
        "finished_ms": at_ms,
        "duration_ms": 0,
        "result": {},
        "error_code": "",
        "message": "",
    }
    with engine.begin() as conn:
        conn.execute(sa.insert(job_runs).values({**row, **changes}))


def add_job(engine: Engine, name: str, gone_days_ago: int | None) -> None:
    gone_ms = None if gone_days_ago is None else NOW - gone_days_ago * DAY
    row = {"name": name, "queue": "job.x", "distribution": "x 1", "terms": {}, "announced_ms": 1}
    with engine.begin() as conn:
        conn.execute(sa.insert(jobs).values({**row, "gone_ms": gone_ms}))


def left(engine: Engine) -> list[tuple[str, str, int]]:
    order = (job_runs.c.job, job_runs.c.scope_id, job_runs.c.plan_ms.desc())
    query = sa.select(job_runs.c.job, job_runs.c.scope_id, job_runs.c.plan_ms).order_by(*order)
    with engine.connect() as conn:
        return [(job, scope, (NOW - ms) // DAY) for job, scope, ms in conn.execute(query)]


def names(engine: Engine) -> list[str]:
    with engine.connect() as conn:
        return list(conn.execute(sa.select(jobs.c.name).order_by(jobs.c.name)).scalars())


def test_old_runs_of_a_job_are_removed(engine: Engine) -> None:
    """Good and failed ones have one retention."""
    for days_ago in (1, 29, 31, 40):
        add_run(engine, days_ago)
    add_run(engine, 50, status="FAILED")
    assert prune(engine) == JobsPruned(job_runs=3)
    assert [days for _, _, days in left(engine)] == [29, 1][::-1]
    assert prune(engine) == JobsPruned()


def test_the_newest_scheduled_run_of_each_scope_stays(engine: Engine) -> None:
    """Without it the planner would run a plan again. A run on demand is no memory."""
    for days_ago in (40, 50):
        add_run(engine, days_ago, scope_id="a")
        add_run(engine, days_ago, scope_id="b")
    add_run(engine, 35, scope_id="b", origin="demand")
    assert prune(engine) == JobsPruned(job_runs=3)
    assert left(engine) == [("tidy", "a", 40), ("tidy", "b", 40)]


def test_a_running_run_stays(engine: Engine) -> None:
    """Also a plan of long ago that runs again after its failure."""
    add_run(engine, 1)
    add_run(engine, 40, status="RUNNING", finished_ms=None)
    add_run(engine, 50, status="RUNNING")
    assert prune(engine) == JobsPruned()


def test_a_job_that_is_gone_leaves_with_its_runs(engine: Engine) -> None:
    """It stays as long as its runs; one that is installed stays for good."""
    add_job(engine, "gone", 31)
    add_job(engine, "going", 29)
    add_job(engine, "installed", None)
    for job in ("gone", "going", "installed"):
        add_run(engine, 40, job)
    assert prune(engine) == JobsPruned(job_runs=1, jobs=1)
    assert names(engine) == ["going", "installed"]
    assert [job for job, _, _ in left(engine)] == ["going", "installed"]


def test_a_job_that_is_gone_stays_while_one_of_its_runs_is_open(engine: Engine) -> None:
    """The leader closes the run as stale; the next pass removes both."""
    add_job(engine, "gone", 31)
    add_run(engine, 40, "gone", status="RUNNING", finished_ms=None)
    assert prune(engine) == JobsPruned()
    assert names(engine) == ["gone"]


def test_runs_of_jobs_prove_the_time(engine: Engine) -> None:
    """An installation that polls nothing has no other rows."""
    for days_ago in range(10):
        add_run(engine, days_ago)
    assert row_gaps.recent(engine, NOW) == []


def test_a_pass_over_runs_of_jobs_is_bounded(
    engine: Engine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It rests after every step, goes on behind runs that stay, and ends at its time limit."""
    monkeypatch.setattr(job_retention, "CHUNK", 2)
    for scope in range(5):
        add_run(engine, 60, scope_id=f"only {scope}")
    for days_ago in range(40, 45):
        add_run(engine, days_ago)
    assert prune(engine, seconds=-1) == JobsPruned()
    rests: list[float] = []
    done = job_retention.prune(engine, BEFORE, rests.append, time.monotonic() + 60)
    assert (done, len(rests)) == (JobsPruned(job_runs=4), 5)
    assert len(left(engine)) == 6
