"""Add the catalogue of jobs and the ledger of their runs."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _jobs()
    _job_runs()


def _jobs() -> None:
    op.create_table(
        "jobs",
        sa.Column("name", sa.String(100), nullable=False),
        sa.Column("queue", sa.String(200), nullable=False),
        sa.Column("distribution", sa.String(200), nullable=False),
        sa.Column("terms", _document(), nullable=False),
        sa.Column("announced_ms", sa.BigInteger(), nullable=False),
        sa.Column("paused_ms", sa.BigInteger(), nullable=True),
        sa.Column("paused_by", sa.String(200), nullable=False, server_default=sa.text("''")),
        sa.Column("gone_ms", sa.BigInteger(), nullable=True),
        sa.Column("told", sa.String(20), nullable=False, server_default=sa.text("''")),
        sa.Column("planning_fault", sa.String(500), nullable=False, server_default=sa.text("''")),
        sa.PrimaryKeyConstraint("name", name="pk_jobs"),
    )


def _job_runs() -> None:
    key = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
    op.create_table(
        "job_runs",
        sa.Column("id", key, nullable=False),
        sa.Column("job", sa.String(100), nullable=False),
        sa.Column("scope_kind", sa.String(50), nullable=False),
        sa.Column("scope_id", sa.String(200), nullable=False),
        sa.Column("plan_ms", sa.BigInteger(), nullable=False),
        sa.Column("origin", sa.String(20), nullable=False),
        sa.Column("status", sa.String(20), nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("max_attempts", sa.Integer(), nullable=False),
        sa.Column("next_retry_ms", sa.BigInteger(), nullable=True),
        sa.Column("reentrant", sa.Boolean(), nullable=False),
        sa.Column("runner", sa.String(255), nullable=False),
        sa.Column("token", sa.String(64), nullable=False),
        sa.Column("dispatched_ms", sa.BigInteger(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("heartbeat_ms", sa.BigInteger(), nullable=False),
        sa.Column("stale_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=True),
        sa.Column("duration_ms", sa.BigInteger(), nullable=True),
        sa.Column("rows_affected", sa.BigInteger(), nullable=False, server_default="0"),
        sa.Column("result", _document(), nullable=False),
        sa.Column("error_code", sa.String(50), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("losses", sa.Integer(), nullable=False, server_default=sa.text("0")),
        sa.PrimaryKeyConstraint("id", name="pk_job_runs"),
        sa.UniqueConstraint(
            "job",
            "scope_kind",
            "scope_id",
            "plan_ms",
            name="uq_job_runs_job_scope_kind_scope_id_plan_ms",
        ),
        sa.CheckConstraint("status IN ('RUNNING', 'SUCCESS', 'FAILED')", name="ck_job_runs_status"),
        sa.CheckConstraint("attempt >= 0 AND attempt <= max_attempts", name="ck_job_runs_attempt"),
        sa.CheckConstraint("duration_ms IS NULL OR duration_ms >= 0", name="ck_job_runs_duration"),
        sqlite_autoincrement=True,
    )
    scope = ["job", "scope_kind", "scope_id"]
    _partial_index("ix_job_runs_running", scope, "status = 'RUNNING'")
    _partial_index("ix_job_runs_retry", ["job", "next_retry_ms"], "next_retry_ms IS NOT NULL")
    _partial_index("ix_job_runs_failed", ["id"], "status = 'FAILED'")
    op.create_index("ix_job_runs_job_status_id", "job_runs", ["job", "status", "id"])
    op.create_index("ix_job_runs_finished_ms", "job_runs", ["finished_ms"])


def _partial_index(name: str, columns: list[str], condition: str) -> None:
    where = sa.text(condition)
    op.create_index(name, "job_runs", columns, sqlite_where=where, postgresql_where=where)


def _document() -> Any:
    return sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
