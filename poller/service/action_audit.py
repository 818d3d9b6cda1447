"""The audit row of an action that happens in Redis: a transaction of its own after the action.

A change in SQL stores its row in its own transaction instead (db/inventory/inventory_feed.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.domain.access import audit_entry
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.observability import logs
from poller.service.access import audit_log

if TYPE_CHECKING:
    from poller.bootstrap import Services

log = logs.get(__name__)


def record(services: Services, actor: Actor, entry: AuditEntry) -> str:
    """Store the entry of an action that was carried out. Return a note if it could not be stored.

    The action cannot be taken back, so it stays. The note is "" if all is well.
    """
    try:
        audit_log.record(services, actor, entry)
    except errors.StoreError as error:
        log.error(
            "audit_row_lost",
            action=entry.action,
            subject=entry.subject,
            count=entry.count,
            actor=actor.name,
            error=str(error),
        )
        return f"the audit log has no row of this: {error.message}"
    return ""


def bulk_entry(action: str, subject: str, names: Iterable[str], **after: Any) -> AuditEntry:
    """Return the entry of an action on many: the subject selected them; some of their names."""
    every = list(names)
    kept = audit_entry.bounded_names(every)
    return AuditEntry(action, subject, after={**after, "names": kept}, count=len(every))
