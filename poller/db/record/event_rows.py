"""Events in SQL: copied from the stream, each once, and filtered by age, kind and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.tables import events, targets
from poller.domain.record.event_kinds import Event, EventFilter, Kind

_COLUMNS = (
    "stream_id",
    "at_ms",
    "kind",
    "message",
    "device",
    "target",
    "target_id",
    "device_id",
    "data",
)


def record(engine: Engine, entries: Sequence[tuple[str, Event]]) -> None:
    """Store events by the ids of their entries. Idempotent. Raises StoreError."""
    rows = [_row(stream_id, event) for stream_id, event in entries]
    with sql.writing(engine) as conn:
        bulk.insert(conn, events, rows, "ON CONFLICT (stream_id) DO NOTHING", _COLUMNS)


def _row(stream_id: str, event: Event) -> tuple[Any, ...]:
    """Return the values of `_COLUMNS`."""
    return (
        stream_id,
        event.at_ms,
        event.kind.value,
        event.message,
        event.device,
        event.target,
        event.target_id,
        event.device_id,
        dict(event.data),
    )


def recent(engine: Engine, wanted: EventFilter, limit: int) -> list[Event]:
    """Return events, the newest first. Kinds of a later release are left out."""
    query = sa.select(*(events.c[name] for name in _COLUMNS[1:])).order_by(
        events.c.at_ms.desc(), events.c.id.desc()
    )
    if len(wanted.kinds) == 1:
        query = query.where(events.c.kind == next(iter(wanted.kinds)))
    elif wanted.kinds:
        query = query.where(in_list(events.c.kind, [kind.value for kind in wanted.kinds]))
    if wanted.device:
        query = query.where(events.c.device == wanted.device)
    if wanted.target:
        query = query.where(events.c.target == wanted.target)
    if wanted.devices is not None:
        query = query.where(in_list(events.c.device, wanted.devices))
    if wanted.target_ids is not None:
        of_device = events.c.target_id.is_(None)
        query = query.where(of_device | in_list(events.c.target_id, wanted.target_ids))
    if wanted.since_ms:
        query = query.where(events.c.at_ms >= wanted.since_ms)
    with sql.single_read(engine) as conn:
        rows = conn.execute(query.limit(limit)).all()
    return [_event(row) for row in rows if row.kind in _KINDS]


def devices_down(engine: Engine) -> dict[int, list[int]]:
    """Return the devices whose last event says that they are down, with their enabled targets."""
    last = _last_of(events.c.device_id, Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED)
    query = (
        sa.select(targets.c.device_id, targets.c.id)
        .where(targets.c.device_id.in_(last), targets.c.enabled)
        .order_by(targets.c.id)
    )
    found: dict[int, list[int]] = {}
    with sql.single_read(engine) as conn:
        for device_id, target_id in conn.execute(query):
            found.setdefault(device_id, []).append(target_id)
    return found


def targets_failing(engine: Engine) -> list[int]:
    """Return the enabled targets whose last event says that they are failing."""
    last = _last_of(events.c.target_id, Kind.TARGET_FAILED, Kind.TARGET_RECOVERED)
    query = sa.select(targets.c.id).where(targets.c.id.in_(last), targets.c.enabled)
    with sql.single_read(engine) as conn:
        return list(conn.execute(query).scalars())


def _last_of(column: sa.Column[Any], bad: Kind, good: Kind) -> sa.Select[Any]:
    """Select the values of a column whose last event of two kinds is the bad one."""
    newest = (
        sa.select(sa.func.max(events.c.id))
        .where(events.c.kind.in_([bad.value, good.value]))
        .group_by(column)
    )
    return sa.select(column).where(events.c.id.in_(newest), events.c.kind == bad.value)


def _event(row: Any) -> Event:
    fields = dict(row._mapping)
    fields["kind"] = Kind(fields["kind"])
    return Event(**fields)


_KINDS = frozenset(kind.value for kind in Kind)
