"""Add the days of targets whose roll-ups are to be made."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_table(
        "history_pending",
        sa.Column("day_ms", sa.BigInteger(), nullable=False),
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("marks", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("day_ms", "target_id", name="pk_history_pending"),
        sqlite_with_rowid=False,
    )
