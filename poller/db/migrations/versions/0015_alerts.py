"""Add rules, alerts, maintenance, deliveries of notifications, and parents of devices."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None


def upgrade() -> None:
    _alert_changes()
    _alert_rules()
    _alert_rules_version()
    _alert_tellings()
    _alerts()
    _deliveries()
    _maintenances()
    _device_parents()
    op.execute("INSERT INTO alert_rules_version (id, version) VALUES (1, 1)")


def _alert_changes() -> None:
    op.create_table(
        "alert_changes",
        sa.Column("id", _key(), nullable=False),
        sa.Column("alert_id", sa.BigInteger(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(30), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_changes"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alert_changes_alert_id_id", "alert_changes", ["alert_id", "id"])
    op.create_index("ix_alert_changes_at_ms", "alert_changes", ["at_ms"])


def _alert_rules() -> None:
    op.create_table(
        "alert_rules",
        sa.Column("id", _key(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("owner", sa.String(300), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("body", _document(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("updated_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_rules"),
        sa.UniqueConstraint("name", name="uq_alert_rules_name"),
        sqlite_autoincrement=True,
    )


def _alert_rules_version() -> None:
    op.create_table(
        "alert_rules_version",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alert_rules_version"),
    )


def _alert_tellings() -> None:
    op.create_table(
        "alert_tellings",
        sa.Column("alert_id", sa.BigInteger(), nullable=False),
        sa.Column("route", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("round", sa.Integer(), nullable=False),
        sa.Column("delivery_id", sa.BigInteger(), nullable=False),
        sa.Column("told_ms", sa.BigInteger(), nullable=False),
        sa.UniqueConstraint("alert_id", "route", "kind", "round", name="uq_alert_tellings_once"),
    )
    op.create_index("ix_alert_tellings_delivery_id", "alert_tellings", ["delivery_id"])


def _alerts() -> None:
    op.create_table(
        "alerts",
        sa.Column("id", _key(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column("open_key", sa.String(64), nullable=True),
        sa.Column("rule", sa.String(200), nullable=False),
        sa.Column("severity", sa.String(20), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("device_id", sa.BigInteger(), nullable=True),
        sa.Column("target_id", sa.BigInteger(), nullable=True),
        sa.Column("device", sa.String(200), nullable=False),
        sa.Column("target", sa.String(200), nullable=False),
        sa.Column("site", sa.String(200), nullable=False),
        sa.Column("series", sa.Text(), nullable=False),
        sa.Column("labels", _document(), nullable=False),
        sa.Column("text", sa.Text(), nullable=False),
        sa.Column("value", sa.Float(), nullable=True),
        sa.Column("since_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("gone_ms", sa.BigInteger(), nullable=False),
        sa.Column("fired_ms", sa.BigInteger(), nullable=False),
        sa.Column("resolved_ms", sa.BigInteger(), nullable=False),
        sa.Column("suppressed_by", sa.String(250), nullable=False),
        sa.Column("held_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("acknowledged", _document(), nullable=True),
        sa.Column("flaps", sa.Integer(), nullable=False),
        sa.Column("damped_until_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_alerts"),
        sa.UniqueConstraint("open_key", name="uq_alerts_open_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_alerts_device_id_id", "alerts", ["device_id", "id"])
    op.create_index("ix_alerts_resolved_ms", "alerts", ["resolved_ms"])
    op.create_index("ix_alerts_state_id", "alerts", ["state", "id"])


def _deliveries() -> None:
    op.create_table(
        "deliveries",
        sa.Column("id", _key(), nullable=False),
        sa.Column("key", sa.String(100), nullable=False),
        sa.Column("route", sa.String(100), nullable=False),
        sa.Column("receiver", sa.String(100), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("group_key", sa.Text(), nullable=False),
        sa.Column("notice", _document(), nullable=False),
        sa.Column("state", sa.String(20), nullable=False),
        sa.Column("attempts", sa.Integer(), nullable=False),
        sa.Column("due_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease_until_ms", sa.BigInteger(), nullable=False),
        sa.Column("lease_token", sa.String(64), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("ended_ms", sa.BigInteger(), nullable=False),
        sa.Column("answer", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_deliveries"),
        sa.UniqueConstraint("key", name="uq_deliveries_key"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_deliveries_created_ms", "deliveries", ["created_ms"])
    op.create_index("ix_deliveries_state_due_ms", "deliveries", ["state", "due_ms"])


def _maintenances() -> None:
    op.create_table(
        "maintenances",
        sa.Column("id", _key(), nullable=False),
        sa.Column("filter", sa.Text(), nullable=False),
        sa.Column("rule", sa.String(200), nullable=False),
        sa.Column("alert_identity", sa.Text(), nullable=False),
        sa.Column("reason", sa.Text(), nullable=False),
        sa.Column("starts_ms", sa.BigInteger(), nullable=False),
        sa.Column("ends_ms", sa.BigInteger(), nullable=False),
        sa.Column("cron", sa.String(100), nullable=False),
        sa.Column("time_zone", sa.String(100), nullable=False),
        sa.Column("length_ms", sa.BigInteger(), nullable=False),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_maintenances"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_maintenances_ends_ms", "maintenances", ["ends_ms"])


def _device_parents() -> None:
    op.create_table(
        "device_parents",
        sa.Column("device_id", _key(), nullable=False),
        sa.Column("parent_id", _key(), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.id"], name="fk_device_parents_device_id", ondelete="CASCADE"
        ),
        sa.ForeignKeyConstraint(
            ["parent_id"], ["devices.id"], name="fk_device_parents_parent_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("device_id", name="pk_device_parents"),
    )
    op.create_index("ix_device_parents_parent_id", "device_parents", ["parent_id"])


def _key() -> Any:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _document() -> Any:
    return sa.JSON().with_variant(postgresql.JSONB(), "postgresql")
