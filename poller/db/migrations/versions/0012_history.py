"""Add the tables of history: blocks of polls, and roll-ups of 5 minutes and of an hour.

On PostgreSQL they are partitioned by time, so that retention is a DROP. The default partition takes
rows for which no partition was made.
"""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

_ROLLUPS = ("history_5m", "history_1h")


def upgrade() -> None:
    op.create_table(
        "history_blocks",
        sa.Column("target_id", sa.BigInteger(), nullable=False),
        sa.Column("start_ms", sa.BigInteger(), nullable=False),
        sa.Column("end_ms", sa.BigInteger(), nullable=False),
        sa.Column("polls", sa.Integer(), nullable=False),
        sa.Column("data", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("target_id", "start_ms", name="pk_history_blocks"),
        postgresql_partition_by="RANGE (start_ms)",
    )
    op.create_index("ix_history_blocks_end_ms", "history_blocks", ["end_ms"], unique=False)
    for table in _ROLLUPS:
        op.create_table(
            table,
            sa.Column("target_id", sa.BigInteger(), nullable=False),
            sa.Column("start_ms", sa.BigInteger(), nullable=False),
            sa.Column("data", sa.LargeBinary(), nullable=False),
            sa.PrimaryKeyConstraint("target_id", "start_ms", name=f"pk_{table}"),
            postgresql_partition_by="RANGE (start_ms)",
        )
        op.create_index(f"ix_{table}_start_ms", table, ["start_ms"], unique=False)
    if op.get_bind().dialect.name == "postgresql":
        for table in ("history_blocks", *_ROLLUPS):
            # The bytes are compressed already: the server need not try.
            op.execute(f"ALTER TABLE {table} ALTER COLUMN data SET STORAGE EXTERNAL")
            op.execute(f"CREATE TABLE {table}_default PARTITION OF {table} DEFAULT")
