"""The audit log as texts: each row a sentence, with what was before and after."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass

from poller.db.access.audit_rows import AuditRow
from poller.presentation import formatting
from poller.presentation.record import audit_sentences
from poller.presentation.record.audit_sentences import Act, FieldChange
from poller.web.api.contract import paging
from poller.web.pages.access import audit_query
from poller.web.pages.access.audit_query import AuditFilter

#: Characters of a value that a page shows; the file and the API have the whole.
LONGEST_VALUE = 240
#: Characters of all changes in the line itself.
_LONGEST_SUMMARY = 120
CSV_COLUMNS = (
    *("id", "at", "actor", "kind", "address"),
    *("action", "subject", "count", "before", "after"),
)


@dataclass(frozen=True, slots=True)
class AuditLine:
    """One row. The addresses narrow the page to the actor, the action and the subject."""

    id: int
    at: str
    who: str
    who_path: str
    does: str
    subject: str
    subject_path: str
    rest: str
    summary: str
    action: str
    action_path: str
    actor: str
    kind: str
    address: str
    changes: Sequence[FieldChange]
    more: str  # what the details are called


@dataclass(frozen=True, slots=True)
class AuditView:
    """One page of rows, the newest first."""

    as_of: str
    query: AuditFilter
    lines: Sequence[AuditLine]
    actions: Sequence[str]  # for the form
    first: str
    following: str
    empty: str


def build_view(
    query: AuditFilter, rows: Sequence[AuditRow], actions: Sequence[str], now_ms: int
) -> AuditView:
    """Build the view of a page; one row more than a page says that there is a next one."""
    shown = rows[: audit_query.LIMIT]
    cursor = paging.encode([shown[-1].id]) if len(rows) > len(shown) else None
    return AuditView(
        as_of=formatting.instant(now_ms),
        query=query,
        lines=[line(row, query) for row in shown],
        actions=actions,
        first=query.url() if query.before else "",
        following=query.url(before=cursor) if cursor else "",
        empty=_empty(query),
    )


def line(row: AuditRow, query: AuditFilter) -> AuditLine:
    """Return the texts of one row."""
    told = audit_sentences.sentence(Act(row.actor, row.action, row.subject, row.count, row.after))
    changed = [_cut(each) for each in audit_sentences.changes(row.before, row.after)]
    return AuditLine(
        id=row.id,
        at=formatting.instant(row.at_ms),
        who=told.who,
        who_path=query.url(actor=row.actor),
        does=told.does,
        subject=told.subject,
        subject_path=query.url(subject=row.subject),
        rest=told.rest,
        summary=_summary(changed),
        action=row.action,
        action_path=query.url(action=row.action),
        actor=row.actor,
        kind=row.kind,
        address=row.address,
        changes=changed,
        more="Before and after" if any(each.before for each in changed) else "Details",
    )


def cells(row: AuditRow) -> list[str]:
    """The cells of a row in a file, in the order of CSV_COLUMNS."""
    return [
        str(row.id),
        formatting.instant(row.at_ms),
        row.actor,
        row.kind,
        row.address,
        row.action,
        row.subject,
        str(row.count),
        json.dumps(dict(row.before)) if row.before else "",
        json.dumps(dict(row.after)) if row.after else "",
    ]


def _cut(change: FieldChange) -> FieldChange:
    return FieldChange(change.name, _short(change.before), _short(change.after))


def _short(text: str) -> str:
    if len(text) <= LONGEST_VALUE:
        return text
    return f"{text[:LONGEST_VALUE]}… ({formatting.exact(len(text))} characters)"


def _summary(changed: Sequence[FieldChange]) -> str:
    """The first changes, as many as a line has room for, without what was left empty."""
    found = ""
    for change in changed:
        if not change.before and change.after == audit_sentences.NOTHING:
            continue
        text = change.text("→")
        more = f"{found}, {text}" if found else text
        if len(more) > _LONGEST_SUMMARY:
            return f"{found}, …" if found else f"{text[:_LONGEST_SUMMARY]}…"
        found = more
    return found


def _empty(query: AuditFilter) -> str:
    if query.before:
        return "There are no older rows."
    if query.is_narrowed:
        return "No row matches. Actor, action and subject are compared as a whole."
    return "Nothing was changed yet."
