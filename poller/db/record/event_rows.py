"""Events in SQL: copied from the stream, each once, and filtered by age, kind and device."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import in_list
from poller.db.record import newest_rows
from poller.db.record.newest_rows import Branch, Order, Span
from poller.db.tables import events, targets
from poller.domain.record.event_kinds import Event, EventFilter, Kind

#: Up to this number of devices each is looked up by its name.
_DEVICE_BRANCHES = 50
#: Up to this number of kinds each is looked up, if more than the kind is checked.
_KIND_BRANCHES = 8
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


#: Instant and entry id of the last event of the page before.
EventKey = tuple[int, str]


class RecordedEvent(NamedTuple):
    """An event with the id of its entry in the stream."""

    id: str
    event: Event


@dataclass(frozen=True, slots=True)
class EventPage:
    """A page of events, the newest first, and the key of the next; None on the last page.

    A page can be short or empty although there is a next one.
    """

    events: Sequence[RecordedEvent]
    next_key: EventKey | None


def page(
    engine: Engine, wanted: EventFilter, limit: int, before: EventKey | None = None
) -> EventPage:
    """Return one page of events. Kinds of a later release are left out. Raises StoreError."""
    span = Span(wanted.since_ms, wanted.until_ms or None, before)
    with sql.reading(engine) as conn:
        found = newest_rows.read(conn, _ORDER, _branches(wanted), span, limit)
    known = [_recorded(row) for row in found.rows if row.kind in _KINDS]
    return EventPage(known, found.next_key)


def recent(engine: Engine, wanted: EventFilter, limit: int) -> list[Event]:
    """Return the newest events, from as many pages as it takes. Raises StoreError."""
    found: list[Event] = []
    before = None
    while len(found) < limit:
        part = page(engine, wanted, limit - len(found), before)
        found += [each.event for each in part.events]
        before = part.next_key
        if before is None:
            break
    return found


def oldest_ms(engine: Engine) -> int:
    """Return the instant of the oldest event; 0 if there is none. Raises StoreError."""
    with sql.single_read(engine) as conn:
        return int(conn.execute(sa.select(sa.func.min(events.c.at_ms))).scalar() or 0)


def _branches(wanted: EventFilter) -> list[Branch]:
    """Return the branches: by device for a few, else by kind, else all events by their time."""
    names = _names(wanted)
    if names is not None and len(names) <= _DEVICE_BRANCHES:
        checked = _filters(wanted, by_kind=True, by_device=False)
        return [Branch(events.c.device == name, checked) for name in sorted(names)]

    others = _filters(wanted, by_kind=False, by_device=True)
    is_served_by_kind = others is None or len(wanted.kinds) <= _KIND_BRANCHES
    if wanted.kinds and is_served_by_kind:
        return [Branch(events.c.kind == kind.value, others) for kind in wanted.kinds]
    return [Branch(sa.true(), _filters(wanted, by_kind=True, by_device=True))]


def _names(wanted: EventFilter) -> Collection[str] | None:
    """Return the names of the wanted devices; None for all."""
    if not wanted.device:
        return wanted.devices
    if wanted.devices is None or wanted.device in wanted.devices:
        return (wanted.device,)
    return ()


def _filters(wanted: EventFilter, by_kind: bool, by_device: bool) -> sa.ColumnElement[bool] | None:
    """Return the condition on each event of a branch; None for all of them."""
    conditions: list[sa.ColumnElement[bool]] = []
    if by_kind and wanted.kinds:
        conditions.append(events.c.kind.in_([kind.value for kind in wanted.kinds]))
    if by_device and wanted.devices is not None:
        conditions.append(in_list(events.c.device, wanted.devices))
    if wanted.target:
        conditions.append(events.c.target == wanted.target)
    if wanted.target_ids is not None:
        of_device = events.c.target_id.is_(None)
        conditions.append(of_device | in_list(events.c.target_id, wanted.target_ids))
    if wanted.visible is not None:
        of_visible = in_list(events.c.device_id, wanted.visible.device_ids)
        conditions.append(of_visible | in_list(events.c.target_id, wanted.visible.target_ids))
    return sa.and_(*conditions) if conditions else None


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


def _recorded(row: Any) -> RecordedEvent:
    fields = {name: row._mapping[name] for name in _COLUMNS[1:]}
    fields["kind"] = Kind(fields["kind"])
    return RecordedEvent(row.stream_id or "", Event(**fields))


_KINDS = frozenset(kind.value for kind in Kind)
_ORDER = Order(events, events.c.at_ms, sa.func.coalesce(events.c.stream_id, ""), "")
