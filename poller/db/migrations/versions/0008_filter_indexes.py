"""Index what filters select devices and targets by, and the order in which lists are read."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

#: As the program writes the condition on each database: SQLite compares the texts.
_DISABLED: dict[str, Any] = {
    "sqlite_where": sa.text("enabled = 0"),
    "postgresql_where": sa.text("NOT enabled"),
}


def upgrade() -> None:
    if op.get_bind().dialect.name == "postgresql":
        _sort_by_code_point("devices", name=200, address=255)
        _sort_by_code_point("targets", name=200)
        op.create_index("ix_devices_tags", "devices", ["tags"], postgresql_using="gin")
    op.create_index("ix_devices_site_id_name", "devices", ["site_id", "name"])
    op.create_index("ix_devices_address", "devices", ["address"])
    op.drop_index("ix_devices_site_id", "devices")
    op.create_index("ix_targets_collector", "targets", ["collector"])
    op.create_index("ix_dead_letters_parked_ms", "dead_letters", ["parked_ms"])
    for table in ("devices", "targets"):
        op.create_index(f"ix_{table}_disabled", table, ["id"], **_DISABLED)


def _sort_by_code_point(table: str, **lengths: int) -> None:
    """Let PostgreSQL sort columns as SQLite does; their indexes are built anew."""
    changes = [
        f'ALTER COLUMN {column} TYPE varchar({length}) COLLATE "C"'
        for column, length in lengths.items()
    ]
    op.execute(f"ALTER TABLE {table} {', '.join(changes)}")
