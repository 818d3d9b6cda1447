"""How often in a row the runners of a job were lost, and whether that holds it back, by seeks."""

from __future__ import annotations

from typing import NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import database_clock
from poller.db import engine as sql
from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs
from poller.domain.jobs import held_back
from poller.domain.jobs.job_run import FailureCode, Status

#: The newest failures of a job among which losses are counted: more make its pause no longer.
MOST_LOST = 10
#: How a run has ended if the losses of its job may go on. One that was given back says nothing.
LOST_CODES = (FailureCode.STALE_TIMEOUT, FailureCode.CANCELED)


class Losses(NamedTuple):
    """Losses of a job in a row, and when the last of them was closed."""

    losses: int = 0
    lost_ms: int = 0


def of_job(conn: Connection, job: str) -> Losses:
    """Read the losses of a job."""
    given = {"given_job": job}
    failed = conn.execute(_NEWEST_FAILED, given).all()
    if not any(row.losses for row in failed):
        return Losses()
    found = [*failed, *conn.execute(_NEWEST_SUCCESS, given)]
    # The order of ids is that of first attempts: a plan may be tried again after later ones.
    ended = sorted(map(rows.to_run, found), key=lambda run: (run.finished_ms or 0, run.id))
    lost_ms = max((run.finished_ms or 0 for run in ended if run.losses), default=0)
    return Losses(held_back.losses_in_a_row(reversed(ended)), lost_ms)


def is_held_back(engine: Engine, job: str) -> bool:
    """Whether no plan of a job may be started now. Raises StoreError.

    True also while it has an abandoned run: the leader closes it first, and it is a loss.
    """
    with sql.reading(engine) as conn:
        if conn.execute(_ABANDONED, {"given_job": job}).first() is not None:
            return True
        losses, lost_ms = of_job(conn, job)
        if not losses:
            return False
        return held_back.until_ms(losses, lost_ms, database_clock.read_ms(conn)) is not None


_OF_JOB = sa.select(*rows.COLUMNS).where(
    job_runs.c.job == sa.bindparam("given_job", type_=job_runs.c.job.type)
)
_NEWEST_FIRST = job_runs.c.id.desc()
_NEWEST_FAILED = (
    _OF_JOB.where(rows.has_status(job_runs, Status.FAILED)).order_by(_NEWEST_FIRST).limit(MOST_LOST)
)
_NEWEST_SUCCESS = (
    _OF_JOB.where(rows.has_status(job_runs, Status.SUCCESS)).order_by(_NEWEST_FIRST).limit(1)
)
_ABANDONED = _OF_JOB.with_only_columns(job_runs.c.id).where(rows.is_abandoned(job_runs)).limit(1)
