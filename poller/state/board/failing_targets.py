"""Which targets fail, and which wait for far too long? Read in pages: a large fleet costs time, not memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import redis

from poller.domain.record import target_status
from poller.domain.record.overview import State, is_long_overdue
from poller.domain.record.target_status import LETTERS, Status
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

PAGE = 2_000
#: Below this a score is no instant but a wish: at once.
_INSTANTS = "(1000"


class Failing(NamedTuple):
    id: int
    interval_ms: int
    status: Status


class Late(NamedTuple):
    id: int
    interval_ms: int
    queue: str
    due_ms: int


def failing(client: redis.Redis, keys: Keys) -> Iterator[Failing]:
    """Every failing target, in no order; one may come twice while the fleet grows. Raises StoreUnavailable."""
    cursor, begun = 0, False
    while cursor or not begun:
        begun = True
        with store_errors(client):
            answer: Any = client.hscan(keys.status, cursor, count=PAGE)
            cursor = answer[0]
            texts = {
                key: text
                for key, text in answer[1].items()
                if text.startswith(LETTERS[State.FAILING])
            }
            intervals = _intervals(client, keys, list(texts))
        for (key, text), interval_ms in zip(texts.items(), intervals, strict=True):
            if interval_ms:
                yield Failing(int(key), interval_ms, target_status.unpack(text))


def long_overdue(
    client: redis.Redis, keys: Keys, queues: Sequence[str], now_ms: int, pages: int | None = None
) -> Iterator[Late]:
    """Targets that wait for more than two of their own intervals; `pages` bounds the look into each queue."""
    for queue in queues:
        for place in (keys.due(queue), keys.urgent(queue)):
            number = 0
            while pages is None or number < pages:
                found, more = _late(client, keys, queue, place, now_ms, number * PAGE)
                yield from found
                number += 1
                if not more:
                    break


def _late(
    client: redis.Redis, keys: Keys, queue: str, place: str, now_ms: int, offset: int
) -> tuple[list[Late], bool]:
    """One page of a place, the oldest first, and whether there may be another."""
    with store_errors(client):
        rows: Any = client.zrange(
            place, _INSTANTS, now_ms, byscore=True, offset=offset, num=PAGE, withscores=True
        )
        intervals = _intervals(client, keys, [key for key, _ in rows])
    waiting = [
        Late(int(key), ms, queue, int(due)) for (key, due), ms in zip(rows, intervals, strict=True)
    ]
    found = [
        late
        for late in waiting
        if late.interval_ms and is_long_overdue(late.due_ms, late.interval_ms, now_ms)
    ]
    return found, len(rows) == PAGE


def _intervals(client: redis.Redis, keys: Keys, ids: list[str]) -> list[int]:
    """0 for a target the board does not know."""
    specs: Any = client.hmget(keys.spec, ids) if ids else []
    words = (str(spec or "").split("|")[1:2] for spec in specs)
    return [int(word[0]) if word and word[0].isdigit() else 0 for word in words]
