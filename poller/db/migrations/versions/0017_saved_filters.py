"""Add the filters that people saved under a name."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None


def _by_code_point(length: int) -> sa.String:
    return sa.String(length).with_variant(sa.String(length, collation="C"), "postgresql")


def upgrade() -> None:
    op.create_table(
        "saved_filters",
        sa.Column("owner", _by_code_point(200), nullable=False),
        sa.Column("name", _by_code_point(100), nullable=False),
        sa.Column("where", sa.Text(), nullable=False),
        sa.Column("sort", sa.String(20), nullable=False),
        sa.Column("is_shared", sa.Boolean(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("owner", "name", name="pk_saved_filters"),
    )
