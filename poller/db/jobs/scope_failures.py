"""The failed scope of a job that still matters, and the newest plan of a job with scopes.

The success of one scope does not mend the failure of another. The scopes themselves are known to
the job's package only, so both are sought among the newest runs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Plan, Status

#: The newest runs of a job, of each status, that are looked at.
NEWEST = 100
#: A retry that is due for longer may be of a scope that no longer exists.
RETRY_NEWS_MS = 600_000


def newest(conn: Connection, job: str) -> JobRun | None:
    """The ended run of the newest plan of a job, which need not be the run that began last."""
    row = conn.execute(_NEWEST, {"job": job}).first()
    return None if row is None else rows.to_run(row)


def failing(conn: Connection, job: str, plan_before: Callable[[int], int]) -> JobRun | None:
    """The newest failure of a job whose scope has not succeeded since.

    One whose retry is to come counts always, another for one more round of the schedule: after that
    its scope has failed again, or no longer exists. `plan_before` gives the plan before a plan.
    """
    failed = conn.execute(_UNMENDED, {"job": job}).all()
    if not failed:
        return None
    since_ms = _last_round_ms(conn, job, plan_before)
    for row in failed:
        if row.is_retried or row.plan_ms >= since_ms:
            run = conn.execute(sa.select(*rows.COLUMNS).where(job_runs.c.id == row.id)).one()
            return rows.to_run(run)
    return None


def _last_round_ms(conn: Connection, job: str, plan_before: Callable[[int], int]) -> int:
    """The plan before the newest one of the schedule that succeeded; 0 if none did."""
    planned = conn.execute(_PLANNED, {"job": job}).all()
    if not planned:
        return 0
    newest = planned[0]
    for row in planned:
        if row.plan_ms < newest.plan_ms:
            return int(row.plan_ms)
    # Many scopes, or a new one.
    before_ms = conn.execute(_BEFORE, newest._asdict()).scalar()
    return plan_before(newest.plan_ms) if before_ms is None else before_ms


def _newest_of(status: Status) -> sa.Subquery:
    """The newest runs of a job with a status, in the order of their first attempts."""
    row = job_runs.alias(f"some_{status.lower()}")
    given = sa.bindparam("job", type_=row.c.job.type)
    chosen = sa.select(row).where(row.c.job == given, rows.has_status(row, status))
    chosen = chosen.where(rows.is_of_the_job(row))
    return chosen.order_by(row.c.id.desc()).limit(NEWEST).subquery(f"newest_{status.lower()}")


def _newest_plan() -> sa.Select[Any]:
    listed = sa.union_all(
        *(
            sa.select(each.c.id, each.c.plan_ms).where(each.c.plan_ms <= rows.ONCE_MS)
            for each in (_newest_of(Status.SUCCESS), _newest_of(Status.FAILED))
        )
    ).subquery("newest_ended")
    by_plan = (listed.c.plan_ms.desc(), listed.c.id.desc())
    first = sa.select(listed.c.id).order_by(*by_plan).limit(1).scalar_subquery()
    return sa.select(*rows.COLUMNS).where(job_runs.c.id == first)


def _unmended() -> sa.Select[Any]:
    """Failures that no success of a later plan of their scope follows, the newest first.

    Those of workers that stopped are none: they are run again at once.
    """
    failed, later = _newest_of(Status.FAILED), job_runs.alias("later")
    mended = sa.exists(
        sa.select(later.c.id)
        .where(*(later.c[name] == failed.c[name] for name in rows.SCOPE))
        .where(later.c.plan_ms > failed.c.plan_ms, rows.has_status(later, Status.SUCCESS))
    )
    is_retried = sa.func.coalesce(
        failed.c.next_retry_ms > rows.ONCE_MS - RETRY_NEWS_MS, sa.false()
    ).label("is_retried")
    return (
        sa.select(failed.c.id, failed.c.plan_ms, is_retried)
        .where(failed.c.error_code != FailureCode.CANCELED.value, sa.not_(mended))
        .order_by(failed.c.id.desc())
    )


def _planned_success() -> sa.Select[Any]:
    """Plans of the schedule that succeeded, the newest first. A run by hand is no round."""
    success = _newest_of(Status.SUCCESS)
    return (
        sa.select(*(success.c[name] for name in Plan._fields))
        .where(success.c.origin == Origin.SCHEDULE.value, success.c.plan_ms <= rows.ONCE_MS)
        .order_by(success.c.plan_ms.desc(), success.c.id.desc())
    )


def _plan_before() -> sa.Select[Any]:
    """The scheduled plan before a plan of a scope."""
    given = {name: sa.bindparam(name, type_=job_runs.c[name].type) for name in Plan._fields}
    return (
        sa.select(job_runs.c.plan_ms)
        .where(*(job_runs.c[name] == given[name] for name in rows.SCOPE))
        .where(job_runs.c.plan_ms < given["plan_ms"])
        .where(job_runs.c.origin == Origin.SCHEDULE.value)
        .order_by(job_runs.c.plan_ms.desc())
        .limit(1)
    )


_NEWEST = _newest_plan()
_UNMENDED = _unmended()
_PLANNED = _planned_success()
_BEFORE = _plan_before()
