"""Add an interval policy to targets. Existing targets keep a fixed interval."""

from __future__ import annotations

from alembic import op

revision = "0002"
down_revision = "0001"
branch_labels = None
depends_on = None

_SCHEDULE_FITS = """\
(policy = 'fixed' AND min_ms IS NULL AND max_ms IS NULL AND staleness IS NULL) OR
(policy = 'adaptive' AND min_ms IS NOT NULL AND max_ms IS NOT NULL AND staleness IS NOT NULL
 AND min_ms >= 1000 AND min_ms <= interval_ms AND interval_ms <= max_ms)"""


def upgrade() -> None:
    # Plain statements that both backends accept. SQLite accepts a check only with a new column.
    # Alembic's alternative, a copy of the table, would lose the AUTOINCREMENT sequence.
    op.execute("ALTER TABLE targets ADD COLUMN policy VARCHAR(20) DEFAULT 'fixed' NOT NULL")
    op.execute("ALTER TABLE targets ADD COLUMN min_ms BIGINT")
    op.execute("ALTER TABLE targets ADD COLUMN max_ms BIGINT")
    op.execute(
        "ALTER TABLE targets ADD COLUMN staleness VARCHAR(100) "
        f"CONSTRAINT ck_targets_schedule CHECK ({_SCHEDULE_FITS})"
    )
