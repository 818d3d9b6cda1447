"""Index runs by outcome and time: failed runs are queried and retained separately."""

from __future__ import annotations

from alembic import op

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.create_index("ix_runs_outcome_plan_ms", "runs", ["outcome", "plan_ms"])
    op.drop_index("ix_runs_plan_ms", "runs")
