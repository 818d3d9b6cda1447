"""The runs of each job in short: some seeks per job, however many runs the ledger has."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.jobs import job_losses, scope_failures
from poller.db.jobs import job_run_rows as rows
from poller.db.tables import job_runs, jobs
from poller.domain.jobs import job_schedule
from poller.domain.jobs.job_health import JobSummary
from poller.domain.jobs.job_run import GLOBAL, JobRun, Status

#: Failures in a row are counted up to this number.
MOST_FAILURES = 1_000


def read(engine: Engine) -> dict[str, JobSummary]:
    """Return the summary of every announced job, in one snapshot. Raises StoreError."""
    with sql.reading(engine) as conn:
        found = conn.execute(_SUMMARIES).all()
        running = sorted(map(rows.to_run, conn.execute(_RUNNING)), key=lambda run: run.id)
        by_id = _ended(conn, found)
        scoped = {row.name: _of_scopes(conn, row) for row in found if row.terms.get("names_scopes")}
        lost = {
            row.name: job_losses.of_job(conn, row.name)
            for row in found
            if row.failures and by_id[row.failed_id].error_code in job_losses.LOST_CODES
        }
    live: dict[str, list[JobRun]] = {}
    for run in running:
        live.setdefault(run.plan.job, []).append(run)
    summaries = {
        row.name: _summary(row, live.get(row.name, []), by_id, *scoped.get(row.name, (None, None)))
        for row in found
    }
    for name, (losses, lost_ms) in lost.items():
        summaries[name] = replace(summaries[name], losses=losses, lost_ms=lost_ms)
    return summaries


def _ended(conn: Connection, found: Sequence[Any]) -> dict[int, JobRun]:
    """The runs that the summaries name, by id."""
    ids = {key for row in found for key in (row.success_id, row.failed_id, row.newest_id) if key}
    query = sa.select(*rows.COLUMNS).where(in_list(job_runs.c.id, sorted(ids)))
    return {row.id: rows.to_run(row) for row in conn.execute(query)}


def _of_scopes(conn: Connection, row: Any) -> tuple[JobRun | None, JobRun | None]:
    """The newest plan's run of a job with scopes, and the failure that still matters."""
    failing = None
    if row.failed_id:
        failing = scope_failures.failing(
            conn, row.name, lambda plan_ms: _plan_before(row.terms, plan_ms)
        )
    return scope_failures.newest(conn, row.name), failing


def _plan_before(terms: Mapping[str, Any], plan_ms: int) -> int:
    """The plan of the schedule before this one."""
    try:
        return job_schedule.from_json(terms["schedule"]).latest_ms(plan_ms - 1)
    except (LookupError, TypeError, ValueError):  # terms of another release
        return plan_ms


def _summary(
    row: Any,
    running: Sequence[JobRun],
    by_id: Mapping[int, JobRun],
    newest: JobRun | None,
    failing: JobRun | None,
) -> JobSummary:
    success = by_id.get(row.success_id)
    newest = newest or by_id.get(row.newest_id)
    known = [run for run in (newest, *running) if run is not None]
    newest = max(known, key=lambda run: (run.plan.plan_ms, run.id), default=None)
    last = failing or newest
    has_failed = last is not None and last.status is Status.FAILED
    return JobSummary(
        last=last,
        last_success_ms=success.finished_ms if success else None,
        last_success_plan_ms=success.plan.plan_ms if success else None,
        running=tuple(running),
        next_retry_ms=row.next_retry_ms,
        # A run by hand of an older plan may have succeeded after the newest plan failed.
        failures=max(row.failures, 1) if has_failed else row.failures,
        newest_plan_ms=newest.plan.plan_ms if newest else None,
        usual_ms=success.duration_ms if success else None,
    )


def _newest_id(status: Status) -> sa.ScalarSelect[int]:
    """The newest run of a job with a status, as one seek."""
    row = job_runs.alias(f"newest_{status.lower()}")
    newest = sa.select(sa.func.max(row.c.id)).where(row.c.job == jobs.c.name)
    return newest.where(rows.has_status(row, status)).correlate(jobs).scalar_subquery()


def _failures() -> sa.ScalarSelect[int]:
    """The number of failed runs of a job since its newest success, as far as it matters."""
    row = job_runs.alias("failure")
    since_success = row.c.id > sa.func.coalesce(_newest_id(Status.SUCCESS), 0)
    listed = (
        sa.select(row.c.id)
        .where(row.c.job == jobs.c.name, rows.has_status(row, Status.FAILED), since_success)
        .where(rows.is_of_the_job(row))
        .limit(MOST_FAILURES)
        .correlate(jobs)
        .subquery()
    )
    return sa.select(sa.func.count()).select_from(listed).scalar_subquery()


def _newest_plan_id() -> sa.ScalarSelect[int]:
    """The run of the newest plan of a job without scopes, as one seek."""
    row = job_runs.alias("newest_plan")
    return (
        sa.select(row.c.id)
        .where(row.c.job == jobs.c.name, row.c.scope_kind == GLOBAL, row.c.scope_id == GLOBAL)
        # A plan of the future is left from a clock that was ahead.
        .where(row.c.plan_ms <= rows.ONCE_MS)
        .order_by(row.c.plan_ms.desc())
        .limit(1)
        .correlate(jobs)
        .scalar_subquery()
    )


def _next_retry() -> sa.ScalarSelect[int]:
    row = job_runs.alias("retry")
    soonest = sa.select(sa.func.min(row.c.next_retry_ms)).where(row.c.job == jobs.c.name)
    return soonest.where(row.c.next_retry_ms.is_not(None)).correlate(jobs).scalar_subquery()


_SUMMARIES = sa.select(
    jobs.c.name,
    jobs.c.terms,
    _newest_id(Status.SUCCESS).label("success_id"),
    _newest_id(Status.FAILED).label("failed_id"),
    _newest_plan_id().label("newest_id"),
    _next_retry().label("next_retry_ms"),
    _failures().label("failures"),
)

#: Without an order: SQLite would read the whole table in the order of ids instead of the index.
_RUNNING = sa.select(*rows.COLUMNS).where(rows.has_status(job_runs, Status.RUNNING))
