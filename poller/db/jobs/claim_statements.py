"""The statements of a claim: a first attempt by insert, a further one by a conditional update."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import sqlalchemy as sa
from sqlalchemy.dialects import postgresql, sqlite

from poller.db.database_clock import PresentMs
from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs, jobs
from poller.domain.jobs.job_run import Origin, Plan, Status


@dataclass(frozen=True, slots=True)
class ClaimStatements:
    """The statements of a claim, made once for each kind of database and of job."""

    insert: sa.Executable
    steal: sa.Executable
    #: Whether the plan could be run, were it not held up; and the origin of its run.
    is_claimable: sa.Executable
    adopt: sa.Executable


@cache
def for_dialect(dialect: str, overlap: bool) -> ClaimStatements:
    """The statements for a database, of a job whose plans may overlap or not."""
    given = {name: sa.bindparam(PREFIX + name, type_=job_runs.c[name].type) for name in _GIVEN}
    own = sa.and_(*rows.of_plan(given))
    is_free = _is_wanted(given)
    if not overlap:
        is_free &= sa.not_(_busy(given))
    claimable = sa.or_(
        rows.is_retry_due(job_runs),
        sa.and_(
            rows.is_abandoned(job_runs),
            job_runs.c.reentrant,
            job_runs.c.attempt < job_runs.c.max_attempts,
        ),
    )
    steal = sa.update(job_runs).where(own, claimable, is_free).values(_stolen(given))
    # A plan without a row was held up, also if the run that did so has ended in this moment.
    is_known = sa.func.coalesce(claimable, sa.false())  # it is NULL without a time of retry
    is_claimable = sa.select(is_known).where(own).scalar_subquery()
    return ClaimStatements(
        insert=_insert(dialect, given, is_free),
        steal=steal.returning(job_runs.c.id, job_runs.c.attempt),
        is_claimable=sa.select(
            sa.func.coalesce(is_claimable, sa.true()).label("is_claimable"),
            sa.select(job_runs.c.origin).where(own).scalar_subquery().label("origin"),
        ),
        adopt=sa.update(job_runs).where(own).values(origin=Origin.SCHEDULE.value),
    )


def _is_wanted(given: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    """The condition that the job is not paused, or a person asks for the run."""
    is_paused = sa.exists(
        sa.select(jobs.c.name).where(jobs.c.name == given["job"], jobs.c.paused_ms.is_not(None))
    )
    return sa.or_(given["origin"] == Origin.DEMAND.value, sa.not_(is_paused))


def _busy(given: Mapping[str, Any]) -> sa.ColumnElement[bool]:
    """The condition that another plan of the scope is running."""
    other = job_runs.alias("other")
    scope = [other.c[name] == given[name] for name in rows.SCOPE]
    is_other = other.c.plan_ms != given["plan_ms"]
    return sa.exists(sa.select(other.c.id).where(*scope, is_other, rows.is_live(other)))


def _insert(
    dialect: str, given: Mapping[str, Any], is_free: sa.ColumnElement[bool]
) -> sa.Executable:
    """Insert the first attempt of a plan, unless it has a row or its scope is busy."""
    # One reading of the clock for all columns: it is read once in a subquery.
    clock = sa.select(PresentMs().label("ms")).subquery("clock")
    values: dict[str, Any] = {
        **{name: given[name] for name in _GIVEN},
        "status": sa.literal(Status.RUNNING.value),
        "attempt": sa.literal(1),
        "started_ms": clock.c.ms,
        "heartbeat_ms": clock.c.ms,
        "stale_ms": clock.c.ms + _LEASE,
        "rows_affected": sa.literal(0),
        "result": sa.literal({}, job_runs.c.result.type),
        "error_code": sa.literal(""),
        "message": sa.literal(""),
    }
    row = sa.select(*values.values()).select_from(clock).where(is_free)
    build = postgresql.insert if dialect == "postgresql" else sqlite.insert
    inserting = build(job_runs).from_select(list(values), row)
    return inserting.on_conflict_do_nothing().returning(job_runs.c.id)


def _stolen(given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a further attempt. Origin, limit of attempts and re-entry stay."""
    is_lost = rows.has_status(job_runs, Status.RUNNING)
    return {
        "status": Status.RUNNING.value,
        "attempt": job_runs.c.attempt + 1,
        **{name: given[name] for name in ("runner", "token", "dispatched_ms")},
        "started_ms": PresentMs(),
        "heartbeat_ms": PresentMs(),
        "stale_ms": PresentMs() + _LEASE,
        "finished_ms": None,
        "duration_ms": None,
        "next_retry_ms": None,
        "rows_affected": 0,
        "result": {},
        "error_code": "",
        "message": "",
        "losses": sa.case((is_lost, job_runs.c.losses + 1), else_=job_runs.c.losses),
    }


_LEASE = sa.bindparam("lease_ms", type_=sa.BigInteger())
#: SQLAlchemy keeps the bare names of columns for itself.
PREFIX = "given_"
#: Columns that the caller of `claim` gives.
_GIVEN = (
    *Plan._fields,
    "origin",
    "max_attempts",
    "reentrant",
    "runner",
    "token",
    "dispatched_ms",
)
