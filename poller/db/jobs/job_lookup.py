"""Single rows of the ledger, and the scopes of a job: what a person asks for, by seeks."""

from __future__ import annotations

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs
from poller.domain.jobs.job_run import JobRun, Plan

_SCOPE = (job_runs.c.scope_kind, job_runs.c.scope_id)


def of_plan(engine: Engine, plan: Plan) -> JobRun | None:
    """Return the run of a plan; None if it has none. Raises StoreError."""
    query = sa.select(*rows.COLUMNS).where(_is_of(plan), job_runs.c.plan_ms == plan.plan_ms)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).one_or_none()
    return None if row is None else rows.to_run(row)


def live(engine: Engine, plan: Plan) -> JobRun | None:
    """Return a run of the plan's scope that has its lease; None if none has. Raises StoreError."""
    query = sa.select(*rows.COLUMNS).where(_is_of(plan), rows.is_live(job_runs)).limit(1)
    with sql.single_read(engine) as conn:
        row = conn.execute(query).one_or_none()
    return None if row is None else rows.to_run(row)


def scopes(engine: Engine, job: str, limit: int) -> list[tuple[str, str]]:
    """Return the first scopes of a job that have a run, in their order. Raises StoreError.

    One seek in the index for each: a job may have a million rows.
    """
    found: list[tuple[str, str]] = []
    with sql.reading(engine) as conn:
        while len(found) < limit:
            query = sa.select(*_SCOPE).where(job_runs.c.job == job).order_by(*_SCOPE).limit(1)
            if found:
                kind, key = found[-1]
                query = query.where(sa.tuple_(*_SCOPE) > sa.tuple_(kind, key))
            row = conn.execute(query).one_or_none()
            if row is None:
                break
            found.append((row.scope_kind, row.scope_id))
    return found


def _is_of(plan: Plan) -> sa.ColumnElement[bool]:
    """The condition that a row is of the plan's job and scope."""
    return sa.and_(
        job_runs.c.job == plan.job,
        job_runs.c.scope_kind == plan.scope_kind,
        job_runs.c.scope_id == plan.scope_id,
    )
