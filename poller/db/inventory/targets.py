"""Targets in SQL: add, edit, remove, list. A device and a name identify a target."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import NOBODY, Author, Change
from poller.db.tables import credentials, devices, removed_targets, sites, targets
from poller.domain.access import audit_entry
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.inventory import row_tag
from poller.domain.inventory.draft import Problem, TargetDraft, raise_first
from poller.domain.scheduling import schedule
from poller.domain.scheduling.interval import Policy
from poller.domain.scheduling.schedule import Schedule


@dataclass(frozen=True, slots=True)
class Target:
    id: int
    device: str
    name: str
    collector: str
    options: Mapping[str, Any]
    credential: str  # the target's own; "" means the device's
    requires: Mapping[str, str]
    interval_ms: int
    timeout_ms: int
    policy: Policy
    min_ms: int | None
    max_ms: int | None
    staleness: str | None
    enabled: bool
    version: int
    site: str  # of its device

    @property
    def full_name(self) -> str:
        return f"{self.device}/{self.name}"

    @property
    def fields(self) -> dict[str, Any]:
        """The fields that people edit."""
        return {name: getattr(self, name) for name in _EDITED}

    @property
    def tag(self) -> str:
        """The tag of the fields that people edit."""
        return row_tag.row_tag({"device": self.device, **self.fields})


@dataclass(frozen=True, slots=True)
class TargetPort:
    """The port of a device's new address, as an option of one of its targets."""

    target: str
    option: str
    port: int


def add(engine: Engine, device: str, draft: TargetDraft, author: Author = NOBODY) -> Target:
    """Store a new target. Raises NotFound (device, credential) or AlreadyExists (name on this
    device).
    """
    with inventory_feed.change(engine, author) as change:
        device_id = lookup.device_id(change.conn, device)
        target_id = insert(change, device_id, device, draft)
        added = _one(change.conn, target_id)
        change.record(AuditEntry("target.add", added.full_name, after=added.fields))
        return added


def insert(change: Change, device_id: int, device: str, draft: TargetDraft) -> int:
    """Insert the row of a new target within a change. Returns its id."""
    row = new_row(draft) | references(change.conn, draft)
    if _is_taken(change.conn, device_id, row["name"]):
        message = f'device "{device}" has a target named "{row["name"]}" already'
        raise errors.AlreadyExists(message, hint="choose another name")
    row |= {
        "device_id": device_id,
        "version": change.version,
        "created_at": change.now,
        "updated_at": change.now,
    }
    # Workers know a target with its siblings.
    inventory_feed.stamp_targets(change, targets.c.device_id == device_id)
    statement = sa.insert(targets).values(row).returning(targets.c.id)
    return int(change.conn.execute(statement).scalar_one())


def edit(
    engine: Engine,
    device: str,
    name: str,
    draft: TargetDraft,
    author: Author = NOBODY,
    expected: str | None = None,
) -> Target:
    """Change the fields that the draft gives. Options are replaced as a whole.

    Raises NotFound, AlreadyExists, EditConflict if the target does not have the expected tag.
    """
    with inventory_feed.change(engine, author) as change:
        conn = change.conn
        target_id = lookup.target_id(conn, device, name)
        before = _one(conn, target_id)
        row_tag.refuse_changed("target", before.full_name, before.tag, expected)
        old = conn.execute(_SCHEDULE.where(targets.c.id == target_id)).mappings().one()
        values = given_columns(draft)
        values |= schedule_columns(draft, dict(old))
        values |= references(conn, draft)
        values |= {"version": change.version, "updated_at": change.now}
        new_name = values.get("name", name)
        if new_name != name and _is_taken(conn, old["device_id"], new_name):
            raise errors.AlreadyExists(f'device "{device}" has a target named "{new_name}" already')
        conn.execute(sa.update(targets).where(targets.c.id == target_id).values(values))
        after = _one(conn, target_id)
        full_name = before.full_name
        change.record(audit_entry.differing("target.edit", full_name, before.fields, after.fields))
        return after


def set_port(change: Change, device: str, new: TargetPort) -> None:
    """Set the option of one target within a change of its device, which stamps the target."""
    target_id = lookup.target_id(change.conn, device, new.target)
    before = _one(change.conn, target_id)
    options = {**before.options, new.option: new.port}
    update = sa.update(targets).where(targets.c.id == target_id).values(options=options)
    change.conn.execute(update)
    after = _one(change.conn, target_id)
    entry = audit_entry.differing("target.edit", before.full_name, before.fields, after.fields)
    change.record(entry)


def remove(
    engine: Engine,
    device: str,
    name: str,
    author: Author = NOBODY,
    expected: str | None = None,
) -> None:
    """Remove a target. Raises NotFound, EditConflict if it does not have the expected tag."""
    with inventory_feed.change(engine, author) as change:
        target_id = lookup.target_id(change.conn, device, name)
        old = _one(change.conn, target_id)
        row_tag.refuse_changed("target", old.full_name, old.tag, expected)
        change.record(AuditEntry("target.remove", old.full_name, before=old.fields))
        removal = {"target_id": target_id, "version": change.version}
        change.conn.execute(sa.insert(removed_targets).values(removal))
        change.conn.execute(sa.delete(targets).where(targets.c.id == target_id))


def show(engine: Engine, device: str, name: str) -> Target:
    with sql.reading(engine) as conn:
        return _one(conn, lookup.target_id(conn, device, name))


def by_id(engine: Engine, target_id: int) -> Target | None:
    """Return the target of this id; None if there is none."""
    with sql.single_read(engine) as conn:
        row = conn.execute(_TARGETS.where(targets.c.id == target_id)).first()
        return _target(row) if row is not None else None


def of_device(engine: Engine, device: str) -> list[Target]:
    """Return all targets of one device. Raises NotFound."""
    with sql.reading(engine) as conn:
        device_id = lookup.device_id(conn, device)
        query = _TARGETS.where(targets.c.device_id == device_id).order_by(targets.c.name)
        return [_target(row) for row in conn.execute(query)]


def of_devices(engine: Engine, names: Sequence[str]) -> dict[str, list[Target]]:
    """Return the targets of those devices that exist, by the name of the device."""
    query = _TARGETS.where(in_list(devices.c.name, names)).order_by(targets.c.name)
    found: dict[str, list[Target]] = {}
    with sql.single_read(engine) as conn:
        for row in conn.execute(query):
            found.setdefault(row.device, []).append(_target(row))
    return found


def listing(
    engine: Engine,
    *,
    ids: Collection[int] | None = None,
    limit: int | None = 50,
    after: tuple[str, str] | None = None,
) -> list[Target]:
    """Return targets in the order of device and name, from the one after `after` on.

    `ids` are those that a filter selects; None is all.
    """
    query = _TARGETS.order_by(devices.c.name, targets.c.name).limit(limit)
    if ids is not None:
        query = query.where(in_list(targets.c.id, ids))
    if after is not None:
        query = query.where(sa.tuple_(devices.c.name, targets.c.name) > sa.tuple_(*after))
    with sql.single_read(engine) as conn:
        return [_target(row) for row in conn.execute(query)]


def new_row(draft: TargetDraft) -> dict[str, Any]:
    """Return the columns of a new target with defaults, without references and stamps."""
    if draft.collector is None:
        raise errors.InvalidInput("the collector is missing", hint="for example snmp")
    defaults: dict[str, Any] = {
        "name": draft.collector,
        "options": {},
        "requires": {},
        "credential_id": None,
        "enabled": True,
    }
    return defaults | given_columns(draft) | schedule_columns(draft)


def given_columns(draft: TargetDraft) -> dict[str, Any]:
    """Return the columns that a draft gives, without its credential and its schedule."""
    values = {
        "name": draft.name,
        "collector": draft.collector,
        "options": draft.options,
        "requires": draft.requires,
        "enabled": draft.enabled,
    }
    return {column: value for column, value in values.items() if value is not None}


def schedule_columns(draft: TargetDraft, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Return the schedule's columns. Raises InvalidInput for the first field that does not fit."""
    columns, problems = resolve_schedule(draft, old)
    raise_first(problems)
    return columns


def resolve_schedule(
    draft: TargetDraft, old: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """Return the schedule's columns and every problem. `old` has the stored columns."""
    stored = None
    if old is not None:
        times = {name: old[name] for name in SCHEDULE_COLUMNS if name != "policy"}
        stored = Schedule(**times, policy=Policy(old["policy"]))
    resolved = schedule.resolve(draft.schedule, stored, draft.defaults)
    columns = {name: getattr(resolved, name) for name in SCHEDULE_COLUMNS}
    columns["policy"] = str(resolved.policy)
    return columns, list(schedule.problems(draft.schedule, resolved))


def references(conn: Connection, draft: TargetDraft) -> dict[str, Any]:
    """Return the columns that refer to other rows. Raises UnknownName."""
    if draft.credential is None:
        return {}
    return {"credential_id": lookup.named_credential_id(conn, draft.credential)}


def _is_taken(conn: Connection, device_id: int, name: str) -> bool:
    same_name = sa.select(targets.c.id).where(
        targets.c.device_id == device_id, targets.c.name == name
    )
    return conn.execute(same_name).first() is not None


def _one(conn: Connection, target_id: int) -> Target:
    return _target(conn.execute(_TARGETS.where(targets.c.id == target_id)).one())


def _target(row: Any) -> Target:
    fields = dict(row._mapping)
    fields["policy"] = Policy(fields["policy"])
    return Target(**fields)


SCHEDULE_COLUMNS = ("policy", "interval_ms", "timeout_ms", "min_ms", "max_ms", "staleness")
_EDITED = (
    "name",
    "collector",
    "options",
    "credential",
    "requires",
    *SCHEDULE_COLUMNS,
    "enabled",
)
_SCHEDULE = sa.select(targets.c.device_id, *(targets.c[name] for name in SCHEDULE_COLUMNS))

_TARGETS = sa.select(
    targets.c.id,
    devices.c.name.label("device"),
    targets.c.name,
    targets.c.collector,
    targets.c.options,
    sa.func.coalesce(credentials.c.name, "").label("credential"),
    targets.c.requires,
    targets.c.interval_ms,
    targets.c.timeout_ms,
    targets.c.policy,
    targets.c.min_ms,
    targets.c.max_ms,
    targets.c.staleness,
    targets.c.enabled,
    targets.c.version,
    sa.func.coalesce(sites.c.name, "").label("site"),
).select_from(
    targets.join(devices, targets.c.device_id == devices.c.id)
    .outerjoin(credentials, targets.c.credential_id == credentials.c.id)
    .outerjoin(sites, devices.c.site_id == sites.c.id)
)
