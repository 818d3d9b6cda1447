"""Targets: add, edit, remove and list. A target is known by its device and its own name."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection, Engine

from poller import errors
from poller.db import engine as sql
from poller.db.inventory import inventory_feed, lookup
from poller.db.inventory.inventory_feed import Change, Notify
from poller.db.tables import credentials, devices, removed_targets, targets
from poller.domain.inventory.draft import TargetDraft, raise_first
from poller.domain.inventory.problem import Problem
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
    credential: str  # its own; empty: the device's
    requires: Mapping[str, str]
    interval_ms: int
    timeout_ms: int
    policy: Policy
    min_ms: int | None
    max_ms: int | None
    staleness: str | None
    enabled: bool
    version: int


def add(engine: Engine, device: str, draft: TargetDraft, notify: Notify | None = None) -> Target:
    """Store a new target. Raises NotFound (device, credential), AlreadyExists (the name on this device)."""
    with inventory_feed.change(engine, notify) as at:
        key = insert(at, lookup.device_id(at.conn, device), device, draft)
        return _one(at.conn, key)


def insert(at: Change, device_id: int, device: str, draft: TargetDraft) -> int:
    """The new row itself, within a change that is under way."""
    row = new_row(draft) | _references(at.conn, draft)
    taken = sa.select(targets.c.id).where(
        targets.c.device_id == device_id, targets.c.name == row["name"]
    )
    if at.conn.execute(taken).first():
        raise errors.AlreadyExists(
            f'device "{device}" has a target named "{row["name"]}" already',
            hint="choose another --name",
        )
    row |= {
        "device_id": device_id,
        "version": at.version,
        "created_at": at.now,
        "updated_at": at.now,
    }
    return int(at.conn.execute(sa.insert(targets).values(row).returning(targets.c.id)).scalar_one())


def edit(
    engine: Engine, device: str, name: str, draft: TargetDraft, notify: Notify | None = None
) -> Target:
    """Change what the draft gives; options are replaced as a whole."""
    with inventory_feed.change(engine, notify) as at:
        key = lookup.target_id(at.conn, device, name)
        old = at.conn.execute(_SCHEDULE.where(targets.c.id == key)).mappings().one()
        values = given(draft) | timed(draft, dict(old)) | _references(at.conn, draft)
        values |= {"version": at.version, "updated_at": at.now}
        if values.get("name", name) != name:
            _refuse_taken(at.conn, key, device, values["name"])
        at.conn.execute(sa.update(targets).where(targets.c.id == key).values(values))
        return _one(at.conn, key)


def remove(engine: Engine, device: str, name: str, notify: Notify | None = None) -> None:
    with inventory_feed.change(engine, notify) as at:
        key = lookup.target_id(at.conn, device, name)
        at.conn.execute(sa.insert(removed_targets).values(target_id=key, version=at.version))
        at.conn.execute(sa.delete(targets).where(targets.c.id == key))


def show(engine: Engine, device: str, name: str) -> Target:
    with sql.reading(engine) as conn:
        return _one(conn, lookup.target_id(conn, device, name))


def of_device(engine: Engine, device: str) -> list[Target]:
    """All targets of one device. Raises NotFound."""
    with sql.reading(engine) as conn:
        key = lookup.device_id(conn, device)
        rows = conn.execute(_TARGETS.where(targets.c.device_id == key).order_by(targets.c.name))
        return [_target(row) for row in rows]


def listing(
    engine: Engine,
    *,
    collector: str | None = None,
    limit: int | None = 50,
    after: tuple[str, str] | None = None,
) -> list[Target]:
    """Targets in the order of device and name; `after` is the (device, name) to continue behind."""
    query = _TARGETS.order_by(devices.c.name, targets.c.name).limit(limit)
    if collector is not None:
        query = query.where(targets.c.collector == collector)
    if after is not None:
        query = query.where(sa.tuple_(devices.c.name, targets.c.name) > sa.tuple_(*after))
    with sql.peeking(engine) as conn:
        return [_target(row) for row in conn.execute(query)]


def new_row(draft: TargetDraft) -> dict[str, Any]:
    """The columns of a new target, defaults filled in; without references and stamps."""
    if draft.collector is None:
        raise errors.InvalidInput("the collector is missing", hint="for example --collector snmp")
    defaults: dict[str, Any] = {
        "name": draft.collector,
        "options": {},
        "requires": {},
        "credential_id": None,
        "enabled": True,
    }
    return defaults | given(draft) | timed(draft)


def given(draft: TargetDraft) -> dict[str, Any]:
    """The columns a draft gives, without its credential and its schedule."""
    values = {
        "name": draft.name,
        "collector": draft.collector,
        "options": draft.options,
        "requires": draft.requires,
        "enabled": draft.enabled,
    }
    return {column: value for column, value in values.items() if value is not None}


def timed(draft: TargetDraft, old: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """The columns of the schedule a draft leads to. Raises InvalidInput for the first that does not fit."""
    settled, problems = settle(draft, old)
    raise_first(problems)
    return settled


def settle(
    draft: TargetDraft, old: Mapping[str, Any] | None = None
) -> tuple[dict[str, Any], list[Problem]]:
    """The same with all problems; `old` has the stored columns."""
    stored = None
    if old is not None:
        stored = Schedule(
            **{name: old[name] for name in _TIMES if name != "policy"}, policy=Policy(old["policy"])
        )
    settled = schedule.settle(draft.schedule, stored, draft.defaults)
    columns = {name: getattr(settled, name) for name in _TIMES} | {"policy": str(settled.policy)}
    return columns, list(schedule.problems(draft.schedule, settled))


def _references(conn: Connection, draft: TargetDraft) -> dict[str, Any]:
    if draft.credential is None:
        return {}
    return {"credential_id": lookup.credential_id(conn, draft.credential)}


def _refuse_taken(conn: Connection, key: int, device: str, name: str) -> None:
    own_device = sa.select(targets.c.device_id).where(targets.c.id == key).scalar_subquery()
    taken = sa.select(targets.c.id).where(targets.c.device_id == own_device, targets.c.name == name)
    if conn.execute(taken).first():
        raise errors.AlreadyExists(f'device "{device}" has a target named "{name}" already')


def _one(conn: Connection, key: int) -> Target:
    return _target(conn.execute(_TARGETS.where(targets.c.id == key)).one())


def _target(row: Any) -> Target:
    target = Target(*row)
    return replace(target, policy=Policy(target.policy))


_TIMES = ("policy", "interval_ms", "timeout_ms", "min_ms", "max_ms", "staleness")
_SCHEDULE = sa.select(*(targets.c[name] for name in _TIMES))

_TARGETS = sa.select(
    targets.c.id,
    devices.c.name,
    targets.c.name,
    targets.c.collector,
    targets.c.options,
    sa.func.coalesce(credentials.c.name, ""),
    targets.c.requires,
    targets.c.interval_ms,
    targets.c.timeout_ms,
    targets.c.policy,
    targets.c.min_ms,
    targets.c.max_ms,
    targets.c.staleness,
    targets.c.enabled,
    targets.c.version,
).select_from(
    targets.join(devices, targets.c.device_id == devices.c.id).outerjoin(
        credentials, targets.c.credential_id == credentials.c.id
    )
)
