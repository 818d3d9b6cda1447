"""Write the old default of RouterOS targets into their options: TLS is the default from now on.

A target without `tls` spoke the plain API, and keeps it as `tls: false`.
"""

from __future__ import annotations

import time
from typing import Any

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects.postgresql import JSONB

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

_DOCUMENT = sa.JSON().with_variant(JSONB(), "postgresql")
_TARGETS = sa.table(
    "targets",
    sa.column("id", sa.BigInteger),
    sa.column("collector", sa.String),
    sa.column("options", _DOCUMENT),
)
_AUDIT = sa.table(
    "audit",
    sa.column("at_ms", sa.BigInteger),
    sa.column("actor", sa.String),
    sa.column("kind", sa.String),
    sa.column("address", sa.String),
    sa.column("action", sa.String),
    sa.column("subject", sa.String),
    sa.column("count", sa.Integer),
    sa.column("before", _DOCUMENT),
    sa.column("after", _DOCUMENT),
)


def upgrade() -> None:
    conn = op.get_bind()
    query = sa.select(_TARGETS.c.id, _TARGETS.c.options).where(_TARGETS.c.collector == "routeros")
    plain = [(key, options) for key, options in conn.execute(query) if "tls" not in options]
    for target_id, options in plain:
        update = sa.update(_TARGETS).where(_TARGETS.c.id == target_id)
        conn.execute(update.values(options={**options, "tls": False}))
    if plain:
        conn.execute(sa.insert(_AUDIT).values(_audit_row(len(plain))))


def _audit_row(count: int) -> dict[str, Any]:
    """Return one row of the audit log for all targets that got the option."""
    return {
        "at_ms": int(time.time() * 1000),
        "actor": f"migration {revision}",
        "kind": "system",
        "address": "",
        "action": "target.edit",
        "subject": "collector:routeros (the plain API, as before)",
        "count": count,
        "before": {},
        "after": {"options": {"tls": False}},
    }
