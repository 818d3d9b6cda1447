"""The first schema: inventory, ledger, readings, events."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None

KEY = sa.BigInteger().with_variant(sa.Integer(), "sqlite")
DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")


def upgrade() -> None:
    _inventory()
    _ledger()


def _inventory() -> None:
    op.create_table(
        "inventory",
        sa.Column("id", sa.Integer(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.CheckConstraint("id = 1", name=op.f("ck_inventory_one_row")),
        sa.PrimaryKeyConstraint("id", name="pk_inventory"),
    )
    op.execute("INSERT INTO inventory (id, version) VALUES (1, 0)")
    op.create_table(
        "sites",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("requires", DOCUMENT, nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_sites"),
        sa.UniqueConstraint("name", name="uq_sites_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "credentials",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("envelope", sa.Text(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_credentials"),
        sa.UniqueConstraint("name", name="uq_credentials_name"),
        sqlite_autoincrement=True,
    )
    op.create_table(
        "devices",
        sa.Column("id", KEY, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("address", sa.String(length=255), nullable=False),
        sa.Column("site_id", KEY, nullable=True),
        sa.Column("credential_id", KEY, nullable=True),
        sa.Column("tags", DOCUMENT, nullable=False),
        sa.Column("requires", DOCUMENT, nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.ForeignKeyConstraint(
            ["credential_id"], ["credentials.id"], name="fk_devices_credential_id"
        ),
        sa.ForeignKeyConstraint(["site_id"], ["sites.id"], name="fk_devices_site_id"),
        sa.PrimaryKeyConstraint("id", name="pk_devices"),
        sa.UniqueConstraint("name", name="uq_devices_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_devices_credential_id", "devices", ["credential_id"], unique=False)
    op.create_index("ix_devices_site_id", "devices", ["site_id"], unique=False)
    op.create_table(
        "targets",
        sa.Column("id", KEY, nullable=False),
        sa.Column("device_id", KEY, nullable=False),
        sa.Column("name", sa.String(length=200), nullable=False),
        sa.Column("collector", sa.String(length=100), nullable=False),
        sa.Column("options", DOCUMENT, nullable=False),
        sa.Column("credential_id", KEY, nullable=True),
        sa.Column("requires", DOCUMENT, nullable=False),
        sa.Column("interval_ms", sa.BigInteger(), nullable=False),
        sa.Column("timeout_ms", sa.BigInteger(), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.Column("created_at", sa.DateTime(timezone=True), nullable=False),
        sa.Column("updated_at", sa.DateTime(timezone=True), nullable=False),
        sa.CheckConstraint("interval_ms >= 1000", name=op.f("ck_targets_interval")),
        sa.CheckConstraint("timeout_ms > 0", name=op.f("ck_targets_timeout")),
        sa.ForeignKeyConstraint(
            ["credential_id"], ["credentials.id"], name="fk_targets_credential_id"
        ),
        sa.ForeignKeyConstraint(
            ["device_id"], ["devices.id"], name="fk_targets_device_id", ondelete="CASCADE"
        ),
        sa.PrimaryKeyConstraint("id", name="pk_targets"),
        sa.UniqueConstraint("device_id", "name", name="uq_targets_device_id_name"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_targets_credential_id", "targets", ["credential_id"], unique=False)
    op.create_index("ix_targets_version", "targets", ["version"], unique=False)
    op.create_table(
        "removed_targets",
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("version", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("target_id", name="pk_removed_targets"),
    )
    op.create_index("ix_removed_targets_version", "removed_targets", ["version"], unique=False)


def _ledger() -> None:
    op.create_table(
        "runs",
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("plan_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("attempt", sa.Integer(), nullable=False),
        sa.Column("outcome", sa.String(length=20), nullable=False),
        sa.Column("error_code", sa.String(length=50), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("started_ms", sa.BigInteger(), nullable=False),
        sa.Column("finished_ms", sa.BigInteger(), nullable=False),
        sa.Column("samples", sa.Integer(), nullable=False),
        sa.Column("runner", sa.String(length=255), nullable=False),
        sa.Column("token", sa.String(length=64), nullable=False),
        sa.PrimaryKeyConstraint("target_id", "plan_ms", name="pk_runs"),
        sqlite_with_rowid=False,
    )
    op.create_index("ix_runs_plan_ms", "runs", ["plan_ms"], unique=False)
    op.create_table(
        "series_sets",
        sa.Column("id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series", sa.LargeBinary(), nullable=False),
        sa.Column("size", sa.Integer(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_series_sets"),
    )
    op.create_table(
        "readings",
        sa.Column("target_id", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), autoincrement=False, nullable=False),
        sa.Column("series_set_id", sa.BigInteger(), nullable=False),
        sa.Column("values", sa.LargeBinary(), nullable=False),
        sa.PrimaryKeyConstraint("target_id", "at_ms", name="pk_readings"),
    )
    op.create_index("ix_readings_at_ms", "readings", ["at_ms"], unique=False)
    op.create_table(
        "events",
        sa.Column("id", KEY, nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("kind", sa.String(length=50), nullable=False),
        sa.Column("device_id", sa.BigInteger(), nullable=True),
        sa.Column("target_id", sa.BigInteger(), nullable=True),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column("data", DOCUMENT, nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_events"),
    )
    op.create_index("ix_events_at_ms", "events", ["at_ms"], unique=False)
