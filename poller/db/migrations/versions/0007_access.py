"""Add users, tokens, sessions and the audit log, which only grows."""

from __future__ import annotations

from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

_REFUSED = "a row of the audit log is never changed"


def upgrade() -> None:
    _users()
    _tokens()
    _sessions()
    _audit()
    _refuse_updates()


def _users() -> None:
    op.create_table(
        "users",
        sa.Column("id", _key(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("password_hash", sa.String(255), nullable=False),
        sa.Column("enabled", sa.Boolean(), nullable=False),
        sa.Column("last_login_ms", sa.BigInteger(), nullable=True),
        *_stamps(),
        sa.PrimaryKeyConstraint("id", name="pk_users"),
        sa.UniqueConstraint("name", name="uq_users_name"),
        sqlite_autoincrement=True,
    )


def _tokens() -> None:
    op.create_table(
        "tokens",
        sa.Column("id", _key(), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("token_hash", sa.String(64), nullable=False),
        sa.Column("scopes", _document(), nullable=False),
        sa.Column("site", sa.String(200), nullable=True),
        sa.Column("created_by", sa.String(200), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=True),
        sa.Column("last_used_ms", sa.BigInteger(), nullable=True),
        *_stamps(),
        sa.PrimaryKeyConstraint("id", name="pk_tokens"),
        sa.UniqueConstraint("name", name="uq_tokens_name"),
        sa.UniqueConstraint("token_hash", name="uq_tokens_token_hash"),
        sqlite_autoincrement=True,
    )


def _sessions() -> None:
    op.create_table(
        "sessions",
        sa.Column("session_hash", sa.String(64), nullable=False),
        sa.Column("name", sa.String(200), nullable=False),
        sa.Column("role", sa.String(20), nullable=False),
        sa.Column("source", sa.String(20), nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("created_ms", sa.BigInteger(), nullable=False),
        sa.Column("seen_ms", sa.BigInteger(), nullable=False),
        sa.Column("expires_ms", sa.BigInteger(), nullable=False),
        sa.PrimaryKeyConstraint("session_hash", name="pk_sessions"),
    )
    op.create_index("ix_sessions_name", "sessions", ["name"])
    op.create_index("ix_sessions_expires_ms", "sessions", ["expires_ms"])


def _audit() -> None:
    op.create_table(
        "audit",
        sa.Column("id", _key(), nullable=False),
        sa.Column("at_ms", sa.BigInteger(), nullable=False),
        sa.Column("actor", sa.String(200), nullable=False),
        sa.Column("kind", sa.String(20), nullable=False),
        sa.Column("address", sa.String(100), nullable=False),
        sa.Column("action", sa.String(50), nullable=False),
        sa.Column("subject", sa.String(500), nullable=False),
        sa.Column("count", sa.Integer(), nullable=False),
        sa.Column("before", _document(), nullable=False),
        sa.Column("after", _document(), nullable=False),
        sa.PrimaryKeyConstraint("id", name="pk_audit"),
        sqlite_autoincrement=True,
    )
    op.create_index("ix_audit_at_ms", "audit", ["at_ms"])
    for column in ("actor", "action", "subject"):
        op.create_index(f"ix_audit_{column}_id", "audit", [column, "id"])


def _refuse_updates() -> None:
    """Let the database itself refuse an UPDATE. Retention deletes old rows."""
    if op.get_bind().dialect.name == "sqlite":
        op.execute(
            "CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit "
            f"BEGIN SELECT RAISE(ABORT, '{_REFUSED}'); END"
        )
        return
    op.execute(
        "CREATE FUNCTION audit_append_only() RETURNS trigger LANGUAGE plpgsql AS "
        f"$$ BEGIN RAISE EXCEPTION '{_REFUSED}'; END $$"
    )
    op.execute(
        "CREATE TRIGGER audit_append_only BEFORE UPDATE ON audit "
        "FOR EACH ROW EXECUTE FUNCTION audit_append_only()"
    )


def _key() -> Any:
    return sa.BigInteger().with_variant(sa.Integer(), "sqlite")


def _document() -> Any:
    return sa.JSON().with_variant(postgresql.JSONB(), "postgresql")


def _stamps() -> list[sa.Column[Any]]:
    kind = sa.DateTime(timezone=True)
    return [
        sa.Column("created_at", kind, nullable=False),
        sa.Column("updated_at", kind, nullable=False),
    ]
