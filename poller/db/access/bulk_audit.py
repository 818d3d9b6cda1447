"""The audit entries of changes of many devices or targets: one each, bounded, with some names.

The fields before a change are the old values, each with the number of rows that had it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from poller.db.alerts import parent_rows
from poller.db.in_list import in_list
from poller.db.inventory import targets as target_rows
from poller.db.tables import credentials, devices, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.tag_change import TagChange


@dataclass(frozen=True, slots=True)
class TargetEdit:
    """The edit of targets with equal collector, options and schedule."""

    old: Mapping[str, Any]
    new: Mapping[str, Any]  # columns
    credential: str | None  # the new one; None: not changed
    ids: Sequence[int]

    def changes(self, name: str) -> bool:
        """Return whether a column gets another value."""
        return name in self.new and self.old[name] != self.new[name]


#: Fields of a target whose change an entry shows, by their columns.
_TARGET_FIELDS = ("options", "requires", "enabled", *target_rows.SCHEDULE_COLUMNS)


def device_edit(
    conn: Connection,
    ids: Collection[int],
    draft: DeviceDraft,
    tags: TagChange | None,
    subject: str,
) -> AuditEntry:
    """Return the entry of an edit of many devices. Call this before the edit."""
    names = ("site", "credential", "tags", "requires", "enabled", "parent")
    after = {name: getattr(draft, name) for name in names if getattr(draft, name) is not None}
    fields = [*after]
    if tags is not None:
        fields.append("tags")
        after |= {"tags_added": tags.add, "tags_removed": tags.remove}
    rows = conn.execute(_DEVICES.where(in_list(devices.c.id, ids))).mappings().all()
    before = {name: audit_entry.distribution((row[name], 1) for row in rows) for name in fields}
    after["names"] = audit_entry.bounded_names([row["name"] for row in rows])
    return AuditEntry("device.edit", subject, before, after, len(rows))


def target_add(
    conn: Connection,
    of_devices: Sequence[sa.ColumnElement[bool]],
    draft: TargetDraft,
    target: str,
    subject: str,
) -> AuditEntry:
    """Return the entry of a new target of many devices. Call this before it is added."""
    query = sa.select(devices.c.name).where(*of_devices).order_by(devices.c.name)
    names = list(conn.execute(query).scalars())
    after = {
        "collector": draft.collector,
        "name": target,
        "options": draft.options or {},
        "credential": draft.credential or "",
        "names": audit_entry.bounded_names(names),
    }
    return AuditEntry("target.add", subject, {}, after, len(names))


def target_edit(
    conn: Connection, ids: Collection[int], edits: Sequence[TargetEdit], subject: str
) -> AuditEntry:
    """Return the entry of an edit of many targets. Call this before the edit."""
    before: dict[str, Any] = {}
    after: dict[str, Any] = {}
    for name in _TARGET_FIELDS:
        changed = [edit for edit in edits if edit.changes(name)]
        if changed:
            olds = ((edit.old[name], len(edit.ids)) for edit in changed)
            news = ((edit.new[name], len(edit.ids)) for edit in changed)
            before[name] = audit_entry.distribution(olds)
            after[name] = audit_entry.distribution(news)
    given = {edit.credential for edit in edits} - {None}
    if given:
        before["credential"] = audit_entry.distribution(_credentials(conn, ids))
        after["credential"] = given.pop()
    names = _target_names(conn, ids)
    after["names"] = audit_entry.bounded_names(names)
    return AuditEntry("target.edit", subject, before, after, len(names))


def _credentials(conn: Connection, ids: Collection[int]) -> Iterator[tuple[str, int]]:
    """Yield the own credentials of these targets, each with its number; "" is none."""
    name = sa.func.coalesce(credentials.c.name, "")
    joined = targets.outerjoin(credentials, targets.c.credential_id == credentials.c.id)
    query = sa.select(name, sa.func.count()).select_from(joined)
    for row in conn.execute(query.where(in_list(targets.c.id, ids)).group_by(name)):
        yield row[0], row[1]


def target_removal(conn: Connection, ids: Collection[int], subject: str) -> AuditEntry:
    """Return the entry of a removal of targets. Call this before the removal."""
    names = _target_names(conn, ids)
    before = {"names": audit_entry.bounded_names(names)}
    named = subject or (names[0] if len(names) == 1 else f"{len(names)} targets")
    return AuditEntry("target.remove", named, before, {}, len(names))


def _target_names(conn: Connection, ids: Collection[int]) -> list[str]:
    name = devices.c.name + "/" + targets.c.name
    query = sa.select(name).join(devices, targets.c.device_id == devices.c.id)
    return list(conn.execute(query.where(in_list(targets.c.id, ids)).order_by(name)).scalars())


_DEVICES = (
    sa.select(
        devices.c.name,
        sa.func.coalesce(sites.c.name, "").label("site"),
        sa.func.coalesce(credentials.c.name, "").label("credential"),
        devices.c.tags,
        devices.c.requires,
        devices.c.enabled,
        sa.func.coalesce(parent_rows.NAME, "").label("parent"),
    )
    .select_from(
        devices.outerjoin(sites, devices.c.site_id == sites.c.id).outerjoin(
            credentials, devices.c.credential_id == credentials.c.id
        )
    )
    .order_by(devices.c.name)
)
