"""Index failed runs by error code and time."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

_HAS_CODE = sa.text("error_code <> ''")


def upgrade() -> None:
    op.create_index(
        "ix_runs_error_code",
        "runs",
        ["error_code", "outcome", "plan_ms"],
        sqlite_where=_HAS_CODE,
        postgresql_where=_HAS_CODE,
    )
