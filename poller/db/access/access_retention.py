"""Delete sessions that have ended and audit rows past their retention, in bounded steps."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import engine as sql
from poller.db.tables import audit, sessions

#: Rows that one transaction deletes at most.
CHUNK = 1_000

Rest = Callable[[float], None]


@dataclass(frozen=True, slots=True)
class AccessPruned:
    """Numbers of deleted rows."""

    audit: int = 0
    sessions: int = 0


def prune(
    engine: Engine, audit_before_ms: int, now_ms: int, rest: Rest, until_mono: float
) -> AccessPruned:
    """Delete audit rows before an instant, and sessions that ended before now. Idempotent."""
    old_rows = sa.select(audit.c.id).where(audit.c.at_ms < audit_before_ms)
    oldest = old_rows.order_by(audit.c.at_ms).limit(CHUNK)
    ended = sa.select(sessions.c.session_hash).where(sessions.c.expires_ms < now_ms)
    of_audit = sa.delete(audit).where(audit.c.id.in_(oldest))
    of_sessions = sa.delete(sessions).where(sessions.c.session_hash.in_(ended.limit(CHUNK)))
    return AccessPruned(
        _delete_all(engine, of_audit, rest, until_mono),
        _delete_all(engine, of_sessions, rest, until_mono),
    )


def _delete_all(engine: Engine, statement: sa.Delete, rest: Rest, until_mono: float) -> int:
    """Repeat a bounded delete until nothing is left; rest as long as each step took."""
    total = 0
    while time.monotonic() < until_mono:
        started_mono = time.monotonic()
        with sql.writing(engine) as conn:
            deleted = conn.execute(statement).rowcount
        total += deleted
        if deleted < CHUNK:
            break
        rest(time.monotonic() - started_mono)
    return total
