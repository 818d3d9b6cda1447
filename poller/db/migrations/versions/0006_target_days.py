"""Add the daily statistics of targets."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "target_days",
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.Column("ok", sa.Integer(), nullable=False),
        sa.Column("partial", sa.Integer(), nullable=False),
        sa.Column("failed", sa.Integer(), nullable=False),
        sa.Column("unpolled", sa.Integer(), nullable=False),
        sa.Column("mean_ms", sa.BigInteger(), nullable=False),
        sa.Column("p50_ms", sa.BigInteger(), nullable=False),
        sa.Column("p95_ms", sa.BigInteger(), nullable=False),
        sa.Column("max_ms", sa.BigInteger(), nullable=False),
        sa.Column("late_p95_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day_ms", "target_id", name="pk_target_days"),
        sqlite_with_rowid=False,
    )
