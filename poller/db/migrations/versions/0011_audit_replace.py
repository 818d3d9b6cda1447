"""Refuse REPLACE INTO audit on SQLite, which alters a row without an UPDATE.

PostgreSQL has no such statement: INSERT ... ON CONFLICT DO UPDATE fires the trigger of UPDATE.
"""

from __future__ import annotations

from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None


def upgrade() -> None:
    if op.get_bind().dialect.name != "sqlite":
        return
    op.execute(
        "CREATE TRIGGER audit_no_replace BEFORE INSERT ON audit "
        "WHEN EXISTS (SELECT 1 FROM audit WHERE id = NEW.id) "
        "BEGIN SELECT RAISE(ABORT, 'a row of the audit log is never changed'); END"
    )
