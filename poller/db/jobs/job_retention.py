"""Delete runs of jobs past their retention, and jobs that are gone, in bounded steps.

Running ones stay, and the newest scheduled run of each job and scope: the planner's memory.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import job_runs, jobs
from poller.domain.jobs.job_run import Origin, Status

#: Runs that one step looks at, and deletes at most.
CHUNK = 1_000

Rest = Callable[[float], None]

_IS_OVER = job_runs.c.status != Status.RUNNING.value


@dataclass(frozen=True, slots=True)
class JobsPruned:
    """Numbers of deleted rows."""

    job_runs: int = 0
    jobs: int = 0


def prune(engine: Engine, before_ms: int, rest: Rest, until_mono: float) -> JobsPruned:
    """Delete runs that ended before this instant, and jobs that were gone before it.

    Idempotent; safe beside runners and another pass. After each step the pass rests as long as the
    step took. Raises StoreError.
    """
    runs = 0
    for ids in _old_runs(engine, before_ms):
        if time.monotonic() >= until_mono:
            break
        runs += _delete_runs(engine, ids, rest)

    names = _gone_jobs(engine, before_ms)
    for name in names:
        runs += _forget_runs(engine, name, before_ms, rest, until_mono)
    return JobsPruned(runs, _forget_jobs(engine, names, before_ms))


def _old_runs(engine: Engine, before_ms: int) -> Iterator[list[int]]:
    """Ids of runs that may go, the oldest first.

    Each step goes on where the last one ended: runs that stay are read once in a pass.
    """
    after_ms, after_id = 0, 0
    while True:
        place = {"after_ms": after_ms, "after_id": after_id, "before_ms": before_ms}
        with sql.single_read(engine) as conn:
            rows = conn.execute(_OLD, {**place, "limit": CHUNK}).all()
        if not rows:
            return
        yield [row.id for row in rows if row.may_go]
        after_ms, after_id = rows[-1].finished_ms, rows[-1].id


def _delete_runs(engine: Engine, ids: list[int], rest: Rest) -> int:
    """Delete these runs, unless one of them runs again. Rest as long as that took."""
    if not ids:
        rest(0.0)
        return 0
    started_mono = time.monotonic()
    statement = sa.delete(job_runs).where(in_list(job_runs.c.id, ids), _IS_OVER)
    with sql.writing(engine) as conn:
        deleted = conn.execute(statement).rowcount
    rest(time.monotonic() - started_mono)
    return deleted


def _gone_jobs(engine: Engine, before_ms: int) -> list[str]:
    query = sa.select(jobs.c.name).where(jobs.c.gone_ms < before_ms).order_by(jobs.c.name)
    with sql.single_read(engine) as conn:
        return list(conn.execute(query).scalars())


def _forget_runs(engine: Engine, job: str, before_ms: int, rest: Rest, until_mono: float) -> int:
    """Delete all runs of a job that are over. One that came back meanwhile keeps its memory."""
    is_gone = sa.exists().where(jobs.c.name == job, jobs.c.gone_ms < before_ms)
    query = sa.select(job_runs.c.id).where(job_runs.c.job == job, _IS_OVER, is_gone).limit(CHUNK)
    deleted = 0
    while time.monotonic() < until_mono:
        with sql.single_read(engine) as conn:
            ids = list(conn.execute(query).scalars())
        if not ids:
            break
        deleted += _delete_runs(engine, ids, rest)
    return deleted


def _forget_jobs(engine: Engine, names: list[str], before_ms: int) -> int:
    """Delete jobs that have no run any more. A job that came back meanwhile stays."""
    if not names:
        return 0
    has_run = sa.exists().where(job_runs.c.job == jobs.c.name)
    is_gone = jobs.c.gone_ms < before_ms
    statement = sa.delete(jobs).where(in_list(jobs.c.name, names), is_gone, ~has_run)
    with sql.writing(engine) as conn:
        return conn.execute(statement).rowcount


_newer = job_runs.alias("newer")
_has_newer = sa.exists().where(
    _newer.c.job == job_runs.c.job,
    _newer.c.scope_kind == job_runs.c.scope_kind,
    _newer.c.scope_id == job_runs.c.scope_id,
    _newer.c.plan_ms > job_runs.c.plan_ms,
    _newer.c.origin == Origin.SCHEDULE.value,
)
_is_demanded = job_runs.c.origin == Origin.DEMAND.value
_after = sa.tuple_(job_runs.c.finished_ms, job_runs.c.id) > sa.tuple_(
    sa.bindparam("after_ms", type_=sa.BigInteger), sa.bindparam("after_id", type_=sa.BigInteger)
)
_OLD = (
    sa.select(
        job_runs.c.id,
        job_runs.c.finished_ms,
        sa.and_(_IS_OVER, sa.or_(_is_demanded, _has_newer)).label("may_go"),
    )
    .where(job_runs.c.finished_ms < sa.bindparam("before_ms"), _after)
    .order_by(job_runs.c.finished_ms, job_runs.c.id)
    .limit(sa.bindparam("limit"))
)
