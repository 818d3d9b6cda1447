"""`/api/v1/audit`: who changed what, from where, and what it was before."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Query, Request, Response
from pydantic import BaseModel, Field

from poller.db.access.audit_rows import AuditQuery, AuditRow
from poller.domain.access.actor import ActorKind
from poller.service.access import audit_log
from poller.web.api.contract import paging, resources
from poller.web.api.contract.needs import Administering
from poller.web.api.contract.paging import Cursor, Limit, Page
from poller.web.api.record import record_filters
from poller.web.api.record.record_filters import Since, Until

router = resources.router("audit")

Word = Annotated[str, Query(max_length=500)]


class AuditBody(BaseModel):
    """One change."""

    id: int
    at: str = Field(description="RFC 3339, in UTC.")
    actor: str
    kind: ActorKind
    address: str
    action: str = Field(description="A noun and a verb, such as device.edit.")
    subject: str
    count: int = Field(description="How many things the action changed.")
    before: dict[str, Any]
    after: dict[str, Any]


@router.get("")
def list_changes(
    call: Administering,
    request: Request,
    response: Response,
    actor: Word = "",
    action: Word = "",
    subject: Word = "",
    since: Since = "",
    until: Until = "",
    limit: Limit = paging.DEFAULT_LIMIT,
    cursor: Cursor = "",
) -> Page[AuditBody]:
    """List changes, the newest first."""
    key = paging.decode(cursor, int)
    before_id = key[0] if key else None
    since_ms, until_ms = record_filters.since_ms(since), record_filters.until_ms(until)
    query = AuditQuery(actor, action, subject, since_ms, limit + 1, before_id, until_ms)
    rows = audit_log.listing(call.services, call.actor, query)
    following = paging.encode([rows[limit - 1].id] if len(rows) > limit else None)
    paging.link_next(request, response, following)
    return Page(items=[_body(row) for row in rows[:limit]], next=following)


def _body(row: AuditRow) -> AuditBody:
    return AuditBody(**audit_log.document(row))
