"""The audit log in SQL: one row per change, appended and never altered."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import audit
from poller.domain.access import masked_fields
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry

#: Characters of the JSON of one document; a longer one is replaced by its size.
MAX_DOCUMENT = 16_384
#: Characters of a subject, as in the table.
MAX_SUBJECT = 500


@dataclass(frozen=True, slots=True)
class AuditRow:
    """One stored entry."""

    id: int
    at_ms: int
    actor: str
    kind: str
    address: str
    action: str
    subject: str
    count: int
    before: Mapping[str, Any]
    after: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class AuditQuery:
    """Which rows, the newest first. `before_id` continues a page."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    since_ms: int = 0
    limit: int = 50
    before_id: int | None = None
    until_ms: int | None = None  # only before this instant


def append(conn: Connection, actor: Actor, entries: Sequence[AuditEntry], now_ms: int) -> None:
    """Store entries in the transaction of their change, without those that changed nothing."""
    rows = [
        {
            "at_ms": now_ms,
            "actor": actor.name,
            "kind": actor.kind.value,
            "address": actor.address,
            "action": entry.action,
            "subject": entry.subject[:MAX_SUBJECT],
            "count": entry.count,
            "before": bounded(entry.before),
            "after": bounded(entry.after),
        }
        for entry in entries
        if not entry.is_nothing
    ]
    if rows:
        conn.execute(sa.insert(audit), rows)


def bounded(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document as plain JSON without secrets, or its size if it is too long."""
    text = json.dumps(masked_fields.masked(document), default=str)
    if len(text) > MAX_DOCUMENT:
        return {"left_out": f"{len(text)} characters"}
    plain: dict[str, Any] = json.loads(text)
    return plain


def listing(engine: Engine, query: AuditQuery) -> list[AuditRow]:
    """Return rows, the newest first. Every condition has its index."""
    wanted = [audit.c.at_ms >= query.since_ms] if query.since_ms else []
    for column in ("actor", "action", "subject"):
        value = getattr(query, column)
        if value:
            wanted.append(audit.c[column] == value)
    if query.until_ms is not None:
        wanted.append(audit.c.at_ms < query.until_ms)
    if query.before_id is not None:
        wanted.append(audit.c.id < query.before_id)
    statement = sa.select(audit).where(*wanted).order_by(audit.c.id.desc()).limit(query.limit)
    with sql.single_read(engine) as conn:
        return [AuditRow(**row._mapping) for row in conn.execute(statement)]


def recent_actions(engine: Engine, rows: int) -> list[str]:
    """Return the actions among the newest rows, in the order of their names."""
    newest = sa.select(audit.c.action).order_by(audit.c.id.desc()).limit(rows).subquery()
    query = sa.select(newest.c.action).distinct()
    with sql.single_read(engine) as conn:
        return sorted(conn.execute(query).scalars())


def last_authors(engine: Engine, actions: Sequence[str], subjects: Sequence[str]) -> dict[str, str]:
    """Return the actor of the newest of these actions on each subject."""
    mine = audit.c.action.in_(actions) & in_list(audit.c.subject, subjects)
    newest = sa.select(sa.func.max(audit.c.id)).where(mine).group_by(audit.c.subject)
    query = sa.select(audit.c.subject, audit.c.actor).where(audit.c.id.in_(newest))
    with sql.single_read(engine) as conn:
        return dict(conn.execute(query).all())
