"""What became of a device that is not in the inventory any more, from the audit log."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope

if TYPE_CHECKING:
    from poller.bootstrap import Services

_REMOVED, _EDITED = "device.remove", "device.edit"


@dataclass(frozen=True, slots=True)
class FormerDevice:
    """A device that was removed or got another name. `who`: "" for a reader who may not know."""

    at_ms: int
    who: str
    new_name: str  # "": it was removed


def find(services: Services, actor: Actor, name: str) -> FormerDevice | None:
    """Return what became of the device of this name; None if nothing says so. Raises StoreError.

    An actor of one site learns nothing: the device may have been of another. Of a removal of many
    at once the audit log knows the filter, not each name.
    """
    if actor.site is not None:
        return None
    queries = [AuditQuery(action=each, subject=name, limit=1) for each in (_REMOVED, _EDITED)]
    rows = [row for query in queries for row in audit_rows.listing(services.engine, query)]
    newest = max(rows, key=lambda row: row.id, default=None)
    if newest is None:
        return None
    new_name = _new_name(newest)
    if newest.action == _EDITED and not new_name:
        return None
    who = newest.actor if actor.may(Scope.ADMIN) else ""
    return FormerDevice(newest.at_ms, who, new_name)


def _new_name(row: AuditRow) -> str:
    return str(row.after.get("name", "")) if row.action == _EDITED else ""
