"""The audit log, for those who may read it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db import database_clock
from poller.db import engine as sql
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.presentation import formatting
from poller.service.access.user_accounts import require_admin

if TYPE_CHECKING:
    from poller.bootstrap import Services


#: Rows of one part of a file.
PART = 1_000
#: The newest rows whose actions a form suggests.
_SUGGESTED_FROM = 1_000


def listing(services: Services, actor: Actor, query: AuditQuery) -> list[AuditRow]:
    """Return rows, the newest first. Raises NotAllowed, StoreError."""
    require_admin(actor)
    for word in (query.actor, query.action, query.subject):
        if not word.isprintable():
            raise errors.InvalidInput("a filter of the audit log is not printable text")
    return audit_rows.listing(services.engine, query)


def every(services: Services, actor: Actor, query: AuditQuery) -> Iterator[list[AuditRow]]:
    """Yield all rows of a query in parts, the newest first. Raises NotAllowed, StoreError."""
    before_id = query.before_id
    while True:
        rows = listing(services, actor, replace(query, limit=PART, before_id=before_id))
        yield rows
        if len(rows) < PART:
            return
        before_id = rows[-1].id


def recent_actions(services: Services, actor: Actor) -> list[str]:
    """Return the actions of the newest rows, for a form. Raises NotAllowed, StoreError."""
    require_admin(actor)
    return audit_rows.recent_actions(services.engine, _SUGGESTED_FROM)


def record(services: Services, actor: Actor, *entries: AuditEntry) -> None:
    """Add rows about an act that changes no row in SQL, all or none. Raises StoreError."""
    with sql.writing(services.engine) as conn:
        audit_rows.append(conn, actor, entries, database_clock.read_ms(conn))


def document(row: AuditRow) -> dict[str, Any]:
    """Return a row as JSON has it."""
    return {
        "id": row.id,
        "at": formatting.instant(row.at_ms),
        "actor": row.actor,
        "kind": row.kind,
        "address": row.address,
        "action": row.action,
        "subject": row.subject,
        "count": row.count,
        "before": dict(row.before),
        "after": dict(row.after),
    }
