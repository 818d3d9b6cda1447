"""The history of jobs for planners and people, read by seeks in indexes.

The ledger may have tens of millions of rows: no function here reads all rows of a job.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.jobs import job_run_rows as rows
from poller.db.jobs import job_summaries
from poller.db.jobs.scope_failures import RETRY_NEWS_MS
from poller.db.tables import job_runs, jobs
from poller.domain.batched import batched
from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_run import JobRun, Origin, Plan, Status
from poller.domain.jobs.plan_choice import PlannedRun, ScopeHistory

#: Job, kind of the scope, id of the scope.
ScopeKey = tuple[str, str, str]

#: Scopes that one statement looks up.
CHUNK = 500


def planning(engine: Engine, scopes: Sequence[ScopeKey]) -> dict[ScopeKey, ScopeHistory]:
    """Return what planning needs to know about each scope. Raises StoreError."""
    found: dict[ScopeKey, ScopeHistory] = {}
    with sql.reading(engine) as conn:
        retries = _due_retry_plans(conn, sorted({job for job, _, _ in scopes}))
        for chunk in batched(scopes, CHUNK):
            for key, newest, is_running in _newest(conn, chunk):
                plans = tuple(retries.get(key, ()))
                found[key] = ScopeHistory(newest, is_running, plans)
    return found


def _newest(
    conn: Connection, scopes: Sequence[ScopeKey]
) -> Iterator[tuple[ScopeKey, PlannedRun | None, bool]]:
    """The newest scheduled run of each scope, and whether a run of it goes on."""
    seeking = _by_scope(conn.dialect.name)
    found = conn.execute(seeking, {"scopes": json.dumps(scopes)}).all()
    ids = [row.newest_id for row in found if row.newest_id is not None]
    columns = (job_runs.c.id, job_runs.c.plan_ms, job_runs.c.status, job_runs.c.attempt)
    planned = {
        run_id: PlannedRun(plan_ms, Status(status), attempt)
        for run_id, plan_ms, status, attempt in conn.execute(
            sa.select(*columns).where(in_list(job_runs.c.id, ids))
        )
    }
    for row in found:
        key = (row.job, row.scope_kind, row.scope_id)
        yield key, planned.get(row.newest_id), bool(row.is_running)


def _due_retry_plans(conn: Connection, names: Sequence[str]) -> dict[ScopeKey, list[int]]:
    """The failed plans of some jobs whose next attempt is due, oldest first."""
    key = (job_runs.c.job, job_runs.c.scope_kind, job_runs.c.scope_id)
    due = sa.select(*key, job_runs.c.plan_ms).where(
        in_list(job_runs.c.job, names), rows.is_retry_due(job_runs, rows.ONCE_MS)
    )
    found: dict[ScopeKey, list[int]] = {}
    for job, kind, scope_id, plan_ms in conn.execute(due):
        found.setdefault((job, kind, scope_id), []).append(plan_ms)
    for plans in found.values():
        plans.sort()
    return found


def due_retries(engine: Engine) -> set[str]:
    """Return the names of jobs with a retry that became due in the last ten minutes."""
    with sql.single_read(engine) as conn:
        return set(conn.execute(_DUE_RETRIES).scalars())


def runs(
    engine: Engine,
    job: str = "",
    status: Status | None = None,
    limit: int = 50,
    before_id: int | None = None,
    scope: tuple[str, str] | None = None,
) -> list[JobRun]:
    """Return runs, the newest first; with `before_id` those before that one.

    The runs of a scope are in the order of plans, all others in the order of their first attempts.
    A scope is that of a job: give both.
    """
    if job and scope is not None:
        chosen = _of_scope(Plan(job, *scope, 0), status, before_id)
    elif job:
        chosen = _of_job(job, [status] if status else list(Status), limit, before_id)
    else:
        chosen = _of_all(status, before_id)
    with sql.single_read(engine) as conn:
        return [rows.to_run(row) for row in conn.execute(chosen.limit(limit))]


def _before(before_id: int | None) -> sa.Select[Any]:
    query = sa.select(*rows.COLUMNS)
    return query if before_id is None else query.where(job_runs.c.id < before_id)


def _of_all(status: Status | None, before_id: int | None) -> sa.Select[Any]:
    """The newest runs of all jobs. Those that run are few: they are sorted, not sought for."""
    query = _before(before_id)
    if status is Status.RUNNING:
        query = query.order_by(_ID_BY_SORTING.desc())
    else:
        query = query.order_by(job_runs.c.id.desc())
    return query if status is None else query.where(rows.has_status(job_runs, status))


def _of_job(
    job: str, statuses: Sequence[Status], limit: int, before_id: int | None
) -> sa.Select[Any]:
    """The newest runs of a job: the index has them in order for each status apart."""
    parts = [
        _before(before_id)
        .with_only_columns(job_runs.c.id)
        .where(job_runs.c.job == job, rows.has_status(job_runs, status))
        .order_by(job_runs.c.id.desc())
        .limit(limit)
        .subquery()
        for status in statuses
    ]
    ids = sa.union_all(*(sa.select(part.c.id) for part in parts)).subquery()
    newest_first = job_runs.c.id.desc()
    return (
        sa.select(*rows.COLUMNS)
        .where(job_runs.c.id.in_(sa.select(ids.c.id)))
        .order_by(newest_first)
    )


def _of_scope(plan: Plan, status: Status | None, before_id: int | None) -> sa.Select[Any]:
    """The runs of a scope by the index of plans."""
    query = sa.select(*rows.COLUMNS).order_by(job_runs.c.plan_ms.desc())
    query = query.where(*(job_runs.c[name] == getattr(plan, name) for name in rows.SCOPE))
    if before_id is not None:
        before = job_runs.alias("before")
        before_ms = sa.select(before.c.plan_ms).where(before.c.id == before_id).scalar_subquery()
        query = query.where(job_runs.c.plan_ms < before_ms)
    if status is not None:
        query = query.where(rows.has_status(job_runs, status))
    return query


def summaries(engine: Engine) -> dict[str, JobSummary]:
    """Return the runs of every announced job in short."""
    return job_summaries.read(engine)


@cache
def _by_scope(dialect: str) -> sa.Select[Any]:
    """The newest scheduled row of each scope of a JSON list, and whether a run of it goes on."""
    listed = _listed_scopes(dialect)
    row, live = job_runs.alias("planned"), job_runs.alias("live")
    newest = (
        sa.select(row.c.id)
        .where(*(row.c[name] == listed.c[name] for name in rows.SCOPE))
        .where(row.c.origin == Origin.SCHEDULE.value)
        # A plan of the future is left from a clock that was ahead: the job would wait for it.
        .where(row.c.plan_ms <= rows.ONCE_MS)
        .order_by(row.c.plan_ms.desc())
        .limit(1)
    )
    # An abandoned run counts: first the leader closes it, and may then hold its job back.
    running = sa.select(live.c.id).where(
        *(live.c[name] == listed.c[name] for name in rows.SCOPE),
        rows.has_status(live, Status.RUNNING),
    )
    return sa.select(
        listed,
        newest.scalar_subquery().label("newest_id"),
        sa.exists(running).label("is_running"),
    )


def _listed_scopes(dialect: str) -> sa.Subquery:
    """A JSON list of scopes as a table."""
    parameter = sa.bindparam("scopes", type_=sa.Text())
    if dialect == "postgresql":
        given = sa.func.jsonb_array_elements(sa.cast(parameter, JSONB))
        item = given.table_valued(sa.column("value", JSONB), name="item")
        parts = [item.c.value[number].astext for number in range(len(rows.SCOPE))]
    else:
        item = sa.func.json_each(parameter).table_valued("value", name="item")
        parts = [
            sa.func.json_extract(item.c.value, f"$[{number}]") for number in range(len(rows.SCOPE))
        ]
    named = [part.label(name) for part, name in zip(parts, rows.SCOPE, strict=True)]
    return sa.select(*named).select_from(item).subquery("listed")


#: For few rows: a database that read in the order of ids might read all rows to find them.
_ID_BY_SORTING = job_runs.c.id + 0

_DUE_RETRIES = sa.select(jobs.c.name).where(
    jobs.c.gone_ms.is_(None),
    sa.exists(
        sa.select(job_runs.c.id).where(
            job_runs.c.job == jobs.c.name,
            rows.is_retry_due(job_runs, rows.ONCE_MS),
            # An older one is left to the regular firing of all jobs, or it fired its job for ever.
            job_runs.c.next_retry_ms > rows.ONCE_MS - RETRY_NEWS_MS,
        )
    ),
)
