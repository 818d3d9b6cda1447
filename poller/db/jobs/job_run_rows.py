"""The columns and conditions of table `job_runs` that its modules share.

The status stands as a literal in a statement: with a parameter neither database uses its partial
index.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import sqlalchemy as sa

from poller.db.database_clock import PresentMs
from poller.db.tables import job_runs
from poller.domain.jobs.job_run import FailureCode, JobRun, Origin, Plan, Status

#: The present time, read once for a whole statement. PostgreSQL seeks in an index for it, but not
#: for a function whose value changes within the statement.
ONCE_MS = sa.select(PresentMs()).scalar_subquery()

#: The columns that name a scope of a job.
SCOPE = ("job", "scope_kind", "scope_id")
COLUMNS = tuple(column for column in job_runs.c if column.name not in ("token", "reentrant"))


def to_run(row: Any) -> JobRun:
    """The run of a row with `COLUMNS`."""
    fields = {column.name: row._mapping[column.name] for column in COLUMNS}
    plan = Plan(*(fields.pop(name) for name in Plan._fields))
    fields["origin"] = Origin(fields["origin"])
    fields["status"] = Status(fields["status"])
    return JobRun(plan=plan, **fields)


def has_status(table: sa.FromClause, status: Status) -> sa.ColumnElement[bool]:
    """The condition that a row has a status."""
    return table.c.status == sa.literal_column(f"'{status.value}'")


def is_of_the_job(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row says something about its job: a mistyped scope does not."""
    return table.c.error_code != FailureCode.UNKNOWN_SCOPE.value


def is_live(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row is RUNNING under a lease that is not stale."""
    return has_status(table, Status.RUNNING) & (table.c.stale_ms > PresentMs())


def is_abandoned(table: sa.FromClause) -> sa.ColumnElement[bool]:
    """The condition that a row is RUNNING under a stale lease."""
    return has_status(table, Status.RUNNING) & (table.c.stale_ms <= PresentMs())


def is_retry_due(
    table: sa.FromClause, now_ms: sa.ColumnElement[int] | None = None
) -> sa.ColumnElement[bool]:
    """The condition that the next attempt of a failed row is due."""
    instant_ms = PresentMs() if now_ms is None else now_ms
    has_attempts = table.c.attempt < table.c.max_attempts
    return (table.c.next_retry_ms <= instant_ms) & has_attempts & has_status(table, Status.FAILED)


def of_plan(values: Mapping[str, Any]) -> list[sa.ColumnElement[bool]]:
    """The conditions that a row is that of a plan. `values` has the fields of `Plan`."""
    return [job_runs.c[name] == values[name] for name in Plan._fields]
