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
from poller.db.in_list import in_list
from poller.db.inventory import devices as device_rows
from poller.db.inventory import inventory_feed
from poller.db.inventory import targets as target_rows
from poller.db.inventory.inventory_feed import NOBODY, Author
from poller.db.tables import credentials, devices, targets
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

#: Returns the checked changes of a target, by its collector and its stored options.
DraftOf = Callable[[str, Mapping[str, Any]], TargetDraft]
#: Returns the tags of a device after the change.
NewTags = Callable[[Collection[str]], Sequence[str]]


def edit_devices(
    engine: Engine,
    ids: Collection[int],
    draft: DeviceDraft,
    new_tags: NewTags | None = None,
    author: Author = NOBODY,
) -> int:
    """Change the fields that the draft gives. Returns how many devices there were to change."""
    with inventory_feed.change(engine, author) as change:
        values = {**device_rows.columns(change, draft), "updated_at": change.now}
        of_ids = in_list(devices.c.id, ids)
        changed = change.conn.execute(sa.update(devices).where(of_ids).values(values)).rowcount
        if new_tags is not None:
            _retag(change.conn, ids, new_tags)
        inventory_feed.stamp_targets(change, in_list(targets.c.device_id, ids))
        return changed


def _retag(conn: Connection, ids: Collection[int], new_tags: NewTags) -> None:
    query = sa.select(devices.c.id, devices.c.tags).where(in_list(devices.c.id, ids))
    groups: dict[tuple[str, ...], list[int]] = {}
    for row in conn.execute(query):
        tags = tuple(new_tags(row.tags))
        if tags != tuple(row.tags):
            groups.setdefault(tags, []).append(row.id)

    for tags, members in groups.items():
        of_group = in_list(devices.c.id, members)
        conn.execute(sa.update(devices).where(of_group).values(tags=list(tags)))


def remove_devices(engine: Engine, ids: Collection[int], author: Author = NOBODY) -> int:
    """Remove devices with their targets. Returns the number of removed targets."""
    with inventory_feed.change(engine, author) as change:
        return device_rows.remove_ids(change, ids)


def add_targets(
    engine: Engine, device_ids: Collection[int], draft: TargetDraft, author: Author = NOBODY
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
        for row, _members in _alike(conn, ids):
            _target_values(conn, row, draft_of)


def edit_targets(
    engine: Engine, ids: Collection[int], draft_of: DraftOf, author: Author = NOBODY
) -> int:
    """Change targets, all or none. Returns how many there were to change.

    Raises InvalidInput for a change that does not fit a target, which it names.
    """
    with inventory_feed.change(engine, author) as change:
        changed = 0
        for row, members in _alike(change.conn, ids):
            values = _target_values(change.conn, row, draft_of)
            values |= {"version": change.version, "updated_at": change.now}
            update = sa.update(targets).where(in_list(targets.c.id, members)).values(values)
            changed += change.conn.execute(update).rowcount
        return changed


def _target_values(conn: Connection, row: Mapping[str, Any], draft_of: DraftOf) -> dict[str, Any]:
    """Return the new columns of targets that are like this row. Raises InvalidInput."""
    try:
        draft = draft_of(row["collector"], row["options"])
        values = target_rows.given_columns(draft)
        values |= target_rows.schedule_columns(draft, row)
    except errors.InvalidInput as error:
        message = f"{row['device']}/{row['target']}: {error.message}"
        raise errors.InvalidInput(message, cause=error.cause, hint=error.hint) from None
    return values | target_rows.references(conn, draft)


def _alike(conn: Connection, ids: Collection[int]) -> Sequence[tuple[Mapping[str, Any], list[int]]]:
    """Return groups of targets with equal collector, options and schedule, each with one row."""
    columns = [targets.c[name] for name in target_rows.SCHEDULE_COLUMNS]
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
    groups: dict[tuple[Any, ...], tuple[Mapping[str, Any], list[int]]] = {}
    for row in conn.execute(query).mappings():
        options = json.dumps(row["options"], sort_keys=True)
        key = (row["collector"], options, *(row[column.name] for column in columns))
        groups.setdefault(key, (dict(row), []))[1].append(row["id"])
    return list(groups.values())


def remove_targets(engine: Engine, ids: Collection[int], author: Author = NOBODY) -> int:
    """Remove targets. Returns how many."""
    with inventory_feed.change(engine, author) as change:
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
