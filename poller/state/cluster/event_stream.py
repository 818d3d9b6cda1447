"""The stream of events, bounded. Other programs may follow it: `XREAD STREAMS poller:events $`.

The leader copies the stream to SQL and stores its position, so an outage of SQL costs no event.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from redis import Redis

from poller.domain.record import event_kinds
from poller.domain.record.event_kinds import Event, Kind
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

BEGINNING = "0-0"
#: Entries in which an event about a worker is searched.
RECENT = 500

_WORKER_KINDS = (Kind.WORKER_JOINED, Kind.WORKER_LOST, Kind.WORKER_LEFT)


class Entry(NamedTuple):
    """One entry of the stream. `event` is None for an entry that this release cannot read."""

    id: str
    event: Event | None


def publish(client: Redis, keys: Keys, events: Iterable[Event], length: int) -> None:
    """Append events in one round trip. Raises StoreError.

    The stream keeps about `length` entries.
    """
    pipe = client.pipeline(transaction=False)
    for event in events:
        fields: dict[Any, Any] = dict(event_kinds.pack(event))
        pipe.xadd(keys.events, fields, maxlen=length, approximate=True)

    with store_errors(client):
        pipe.execute()


def after(client: Redis, keys: Keys, entry_id: str, count: int, wait_ms: int = 0) -> list[Entry]:
    """Entries after this one, oldest first. Raises StoreError.

    Waits up to `wait_ms` for the first entry, which must be less than the client's socket timeout.
    """
    with store_errors(client):
        reply: Any = client.xread({keys.events: entry_id}, count=count, block=wait_ms or None)

    if not reply:
        return []
    # redis-py returns a dict or a list of pairs, by protocol version.
    streams = dict(reply)
    return entries(streams[keys.events])


def newest(client: Redis, keys: Keys, count: int) -> list[Entry]:
    """The last entries, newest first. Raises StoreError."""
    with store_errors(client):
        rows = client.xrevrange(keys.events, count=count)

    return entries(rows)


def is_lost(client: Redis, keys: Keys, worker: str) -> bool:
    """Whether the newest event about a worker says that it was lost. Raises StoreError."""
    for entry in newest(client, keys, RECENT):
        event = entry.event
        if event and event.kind in _WORKER_KINDS and event.data.get("worker") == worker:
            return event.kind is Kind.WORKER_LOST
    return False


def oldest(client: Redis, keys: Keys) -> str:
    """The id of the oldest entry in the stream. Raises StoreError."""
    with store_errors(client):
        rows: Any = client.xrange(keys.events, count=1)

    if not rows:
        return BEGINNING
    entry_id, _ = rows[0]
    return str(entry_id)


def entries(rows: Any) -> list[Entry]:
    """Entries from rows of the server, for callers with a pipeline of their own."""
    parsed = []
    for entry_id, fields in rows:
        event = event_kinds.unpack(fields)
        parsed.append(Entry(entry_id, event))

    return parsed


def is_before(one: str, other: str) -> bool:
    """Whether the first entry id is older than the second."""
    return _order(one) < _order(other)


def recorded(client: Redis, keys: Keys) -> str:
    """The id of the last entry that is in SQL. Raises StoreError."""
    with store_errors(client):
        entry_id: Any = client.get(keys.recorded)

    return str(entry_id or BEGINNING)


def store_recorded(client: Redis, keys: Keys, entry_id: str) -> None:
    """Store the id of the last entry that is in SQL. Raises StoreError."""
    with store_errors(client):
        client.set(keys.recorded, entry_id)


def _order(entry_id: str) -> tuple[int, int]:
    instant_ms, _, number = entry_id.partition("-")
    return int(instant_ms), int(number or 0)
