"""Events in SQL: copied from the stream, each once, and asked for by age, kind and device."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from poller.db import bulk
from poller.db import engine as sql
from poller.db.in_list import among
from poller.db.tables import events
from poller.domain.record.event_kinds import Event, Kind, Wanted

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
    rows = [
        (
            key,
            e.at_ms,
            e.kind.value,
            e.message,
            e.device,
            e.target,
            e.target_id,
            e.device_id,
            dict(e.data),
        )
        for key, e in entries
    ]
    with sql.writing(engine) as conn:
        bulk.insert(conn, events, rows, "ON CONFLICT (stream_id) DO NOTHING", _COLUMNS)


def recent(engine: Engine, wanted: Wanted, limit: int) -> list[Event]:
    """The newest first. What a later version recorded and this one does not know is left out."""
    query = sa.select(*(events.c[name] for name in _COLUMNS[1:])).order_by(
        events.c.at_ms.desc(), events.c.id.desc()
    )
    if len(wanted.kinds) == 1:
        query = query.where(events.c.kind == next(iter(wanted.kinds)))
    elif wanted.kinds:
        query = query.where(among(events.c.kind, [kind.value for kind in wanted.kinds]))
    if wanted.device:
        query = query.where(events.c.device == wanted.device)
    if wanted.target:
        query = query.where(events.c.target == wanted.target)
    if wanted.since_ms:
        query = query.where(events.c.at_ms >= wanted.since_ms)
    with sql.peeking(engine) as conn:
        return [_event(row) for row in conn.execute(query.limit(limit)) if row.kind in _KNOWN]


def _event(row: Any) -> Event:
    at_ms, kind, *rest = row
    return Event(at_ms, Kind(kind), *rest)


_KNOWN = frozenset(kind.value for kind in Kind)
