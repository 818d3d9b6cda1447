"""The stream of events: bounded, for anybody to follow. `XREAD BLOCK 0 STREAMS poller:events $` does it from outside.

The leader copies it to SQL and notes how far it got, so that a database that is away costs no event.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import redis

from poller.domain.record import event_kinds
from poller.domain.record.event_kinds import Event
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

BEGINNING = "0-0"


class Entry(NamedTuple):
    """`event` is None for what this version does not understand."""

    id: str
    event: Event | None


def publish(client: redis.Redis, keys: Keys, happened: Iterable[Event], length: int) -> None:
    """Append them in one round trip; the oldest leave when there are more than about `length`."""
    pipe = client.pipeline(transaction=False)
    for event in happened:
        fields: dict[Any, Any] = dict(event_kinds.pack(event))
        pipe.xadd(keys.events, fields, maxlen=length, approximate=True)
    with store_errors(client):
        pipe.execute()


def after(
    client: redis.Redis, keys: Keys, entry_id: str, count: int, wait_ms: int = 0
) -> list[Entry]:
    """Entries after this one, oldest first. Waits so long for the first: less than the client's own patience."""
    with store_errors(client):
        answer: Any = client.xread({keys.events: entry_id}, count=count, block=wait_ms or None)
    streams = answer.values() if isinstance(answer, dict) else (rows for _, rows in answer or ())
    return [entry for rows in streams for entry in entries(rows)]


def newest(client: redis.Redis, keys: Keys, count: int) -> list[Entry]:
    """The last ones, newest first."""
    with store_errors(client):
        return entries(client.xrevrange(keys.events, count=count))


def entries(rows: Any) -> list[Entry]:
    """What the server answered, for those who asked in a pipeline of their own."""
    return [Entry(str(entry_id), event_kinds.unpack(fields)) for entry_id, fields in rows]


def is_before(one: str, other: str) -> bool:
    return _order(one) < _order(other)


def recorded(client: redis.Redis, keys: Keys) -> str:
    """The id of the last entry that is in SQL."""
    with store_errors(client):
        found: Any = client.get(keys.recorded)
    return str(found or BEGINNING)


def note_recorded(client: redis.Redis, keys: Keys, entry_id: str) -> None:
    with store_errors(client):
        client.set(keys.recorded, entry_id)


def oldest(client: redis.Redis, keys: Keys) -> str:
    """The id of the oldest entry that is still there."""
    with store_errors(client):
        found: Sequence[Entry] = entries(client.xrange(keys.events, count=1))
    return found[0].id if found else BEGINNING


def _order(entry_id: str) -> tuple[int, int]:
    ms, _, number = entry_id.partition("-")
    return int(ms), int(number or 0)
