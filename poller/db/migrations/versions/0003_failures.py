"""Add the durations of a run, names and a unique key for events, and the table of dead letters."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None


def upgrade() -> None:
    for name in ("queue_ms", "collect_ms", "write_ms"):
        op.execute(f"ALTER TABLE runs ADD COLUMN {name} BIGINT DEFAULT '0' NOT NULL")
    _events()
    _dead_letters()


def _events() -> None:
    for name in ("device", "target"):
        op.execute(f"ALTER TABLE events ADD COLUMN {name} VARCHAR(200) DEFAULT '' NOT NULL")
    op.execute("ALTER TABLE events ADD COLUMN stream_id VARCHAR(64)")
    op.create_index("ix_events_stream_id", "events", ["stream_id"], unique=True)
    op.create_index("ix_events_device_at_ms", "events", ["device", "at_ms"])
    op.create_index("ix_events_kind_at_ms", "events", ["kind", "at_ms"])


def _dead_letters() -> None:
    op.create_table(
        "dead_letters",
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("reason", sa.String(length=50), nullable=False),
        sa.Column("error_code", sa.String(length=50), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("first_ms", sa.BigInteger(), nullable=False),
        sa.Column("last_ms", sa.BigInteger(), nullable=False),
        sa.Column("parked_ms", sa.BigInteger(), nullable=False),
        sa.Column("next_ms", sa.BigInteger(), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.PrimaryKeyConstraint("target_id", name="pk_dead_letters"),
    )
