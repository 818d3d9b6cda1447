"""Changes of many devices or targets at once: each is one transaction with one version.

Rows that change in the same way share a statement, so the cost grows with the number of different
rows, not with the size of the fleet.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.access import bulk_audit
from poller.db.access.bulk_audit import TargetEdit
from poller.db.alerts import parent_rows
from poller.db.in_list import in_list
from poller.db.inventory import devices as device_rows
from poller.db.inventory import inventory_feed
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import credentials, devices, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.inventory.tag_change import TagChange

#: Returns the checked changes of a target, by its collector and its stored options.
DraftOf = Callable[[str, Mapping[str, Any]], TargetDraft]


def edit_devices(
    engine: Engine,
    ids: Collection[int],
    draft: DeviceDraft,
    tags: TagChange | None = None,
    author: Author = NOBODY,
    subject: str = "",
) -> int:
    """Change the fields that the draft gives. Returns how many devices there were to change.

    `subject` is the filter that selected them, for the audit log; so below.
    """
    with inventory_feed.change(engine, author) as change:
        if author.actor is not None:
            change.record(bulk_audit.device_edit(change.conn, ids, draft, tags, subject))
        values = {**device_rows.columns(change, draft), "updated_at": change.now}
        of_ids = in_list(devices.c.id, ids)
        changed = change.conn.execute(sa.update(devices).where(of_ids).values(values)).rowcount
        if draft.parent is not None:
            parent_rows.set_one(change, ids, draft.parent)
        if tags is not None:
            _retag(change.conn, ids, tags)
        inventory_feed.stamp_targets(change, in_list(targets.c.device_id, ids))
        return changed


def _retag(conn: Connection, ids: Collection[int], change: TagChange) -> None:
    query = sa.select(devices.c.id, devices.c.tags).where(in_list(devices.c.id, ids))
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in conn.execute(query):
        tags = tuple(change.applied_to(row.tags))
        if tags != tuple(row.tags):
            groups.setdefault(tags, []).append(row.id)

    for tags, members in groups.items():
        of_group = in_list(devices.c.id, members)
        conn.execute(sa.update(devices).where(of_group).values(tags=list(tags)))


def remove_devices(
    engine: Engine, ids: Collection[int], author: Author = NOBODY, subject: str = ""
) -> int:
    """Remove devices with their targets. Returns the number of removed targets."""
    with inventory_feed.change(engine, author) as change:
        return device_rows.remove_ids(change, ids, subject)


def add_targets(
    engine: Engine,
    device_ids: Collection[int],
    draft: TargetDraft,
    author: Author = NOBODY,
    subject: str = "",
) -> int:
    """Add a target to each device that has none of that name. Returns how many were added."""
    with inventory_feed.change(engine, author) as change:
        row = target_rows.new_row(draft) | target_rows.references(change.conn, draft)
        row |= {
            "version": change.version,
            "created_at": change.now,
            "updated_at": change.now,
        }
        values = [sa.literal(value, targets.c[name].type) for name, value in row.items()]
        lacks_it = _lack_target(device_ids, row["name"])
        # Workers know a target with its siblings.
        lacking = sa.select(devices.c.id).where(*lacks_it)
        inventory_feed.stamp_targets(change, targets.c.device_id.in_(lacking))
        new = sa.select(devices.c.id, *values).where(*lacks_it)
        insert = sa.insert(targets).from_select(["device_id", *row], new)
        if author.actor is not None:
            change.record(bulk_audit.target_add(change.conn, lacks_it, draft, row["name"], subject))
        done = change.conn.execute(insert, execution_options={"preserve_rowcount": True})
        return done.rowcount


def _lack_target(device_ids: Collection[int], name: str) -> list[sa.ColumnElement[bool]]:
    """Return the conditions that a device is one of these and has no target of that name."""
    present = targets.alias("present")
    same_name = sa.exists().where(present.c.device_id == devices.c.id, present.c.name == name)
    return [in_list(devices.c.id, device_ids), ~same_name]


def check_target_edits(engine: Engine, ids: Collection[int], draft_of: DraftOf) -> None:
    """Raise InvalidInput if the change does not fit one of the targets; change nothing."""
    with sql.reading(engine) as conn:
        _target_edits(conn, ids, draft_of)


def edit_targets(
    engine: Engine,
    ids: Collection[int],
    draft_of: DraftOf,
    author: Author = NOBODY,
    subject: str = "",
) -> int:
    """Change targets, all or none. Returns how many there were to change.

    Raises InvalidInput for a change that does not fit a target, which it names.
    """
    with inventory_feed.change(engine, author) as change:
        edits = _target_edits(change.conn, ids, draft_of)
        if author.actor is not None:
            change.record(bulk_audit.target_edit(change.conn, ids, edits, subject))
        changed = 0
        for edit in edits:
            values = {**edit.new, "version": change.version, "updated_at": change.now}
            update = sa.update(targets).where(in_list(targets.c.id, edit.ids)).values(values)
            changed += change.conn.execute(update).rowcount
        return changed


def _target_edits(conn: Connection, ids: Collection[int], draft_of: DraftOf) -> list[TargetEdit]:
    """Return the edit of each group of equal targets. Raises InvalidInput."""
    return [_target_edit(conn, row, members, draft_of) for row, members in _alike(conn, ids)]


def _target_edit(
    conn: Connection, row: Mapping[str, Any], members: Sequence[int], draft_of: DraftOf
) -> TargetEdit:
    """Return the new columns of targets that are like this row. Raises InvalidInput."""
    try:
        draft = draft_of(row["collector"], row["options"])
        values = target_rows.given_columns(draft)
        values |= target_rows.schedule_columns(draft, row)
    except errors.InvalidInput as error:
        message = f"{row['device']}/{row['target']}: {error.message}"
        raise errors.InvalidInput(message, cause=error.cause, hint=error.hint) from None
    columns = values | target_rows.references(conn, draft)
    return TargetEdit(row, columns, draft.credential, members)


def _alike(conn: Connection, ids: Collection[int]) -> Sequence[tuple[Mapping[str, Any], list[int]]]:
    """Return groups of targets with equal collector, options and schedule, each with one row."""
    names = (*target_rows.SCHEDULE_COLUMNS, "enabled", "requires")
    columns = [targets.c[name] for name in names]
    query = (
        sa.select(
            targets.c.id,
            devices.c.name.label("device"),
            targets.c.name.label("target"),
            targets.c.collector,
            targets.c.options,
            *columns,
        )
        .join(devices, targets.c.device_id == devices.c.id)
        .where(in_list(targets.c.id, ids))
        .order_by(devices.c.name, targets.c.name)
    )
    groups: dict[str, tuple[Mapping[str, Any], list[int]]] = {}
    for row in conn.execute(query).mappings():
        equal = [row["collector"], row["options"], *(row[name] for name in names)]
        key = json.dumps(equal, sort_keys=True)
        groups.setdefault(key, (dict(row), []))[1].append(row["id"])
    return list(groups.values())


def remove_targets(
    engine: Engine, ids: Collection[int], author: Author = NOBODY, subject: str = ""
) -> int:
    """Remove targets. Returns how many."""
    with inventory_feed.change(engine, author) as change:
        if author.actor is not None:
            change.record(bulk_audit.target_removal(change.conn, ids, subject))
        of_ids = in_list(targets.c.id, ids)
        removed = device_rows.record_removal(change, of_ids)
        change.conn.execute(sa.delete(targets).where(of_ids))
        return removed


def credentials_of(engine: Engine, device_ids: Collection[int]) -> dict[str, int]:
    """Return the credentials of these devices with the number of devices; "" is none."""
    name = sa.func.coalesce(credentials.c.name, "")
    query = (
        sa.select(name, sa.func.count())
        .select_from(devices.outerjoin(credentials, devices.c.credential_id == credentials.c.id))
        .where(in_list(devices.c.id, device_ids))
        .group_by(name)
    )
    with sql.single_read(engine) as conn:
        return dict(conn.execute(query).all())
