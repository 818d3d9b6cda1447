"""Who polls: every worker says every few seconds that it lives, and what it can take."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, fields
from typing import Any

import redis

from poller.domain.record.overview import Worker
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: A worker writes a heartbeat this often.
HEARTBEAT_S = 2.0
#: A worker silent for this long missed two heartbeats; a quarter of one is allowed for delays.
TWO_HEARTBEATS_MISSED_MS = round(2.25 * HEARTBEAT_S * 1000)
#: Within this time every living worker writes a heartbeat, with the time of a clock that was set.
ALL_HEARTBEATS_RENEWED_S = 2.5 * HEARTBEAT_S
#: A worker silent for this long missed five heartbeats and counts as dead.
DEAD_AFTER_MS = round(5 * HEARTBEAT_S * 1000)
FORGET_AFTER_MS = 15 * 60_000
_FIELDS = frozenset(field.name for field in fields(Worker))


def announce(client: redis.Redis, keys: Keys, worker: Worker, news: bool = False) -> int:
    """Say that we live; the time of it is the server's. Returns that time. With news, the leader looks at once."""
    with store_errors(client):
        seconds, micros = client.time()
        seen_ms = seconds * 1000 + micros // 1000
        client.hset(keys.workers, worker.key, json.dumps({**asdict(worker), "seen_ms": seen_ms}))
        if news:
            client.publish(keys.wake, "worker")
    return int(seen_ms)


def leave(client: redis.Redis, keys: Keys, key: str) -> None:
    """Say good-bye; `key` is that of the worker."""
    with store_errors(client):
        client.hdel(keys.workers, key)


def living(client: redis.Redis, keys: Keys, now_ms: int) -> list[Worker]:
    """Workers seen lately, by name."""
    return [worker for worker in known(client, keys) if is_alive(worker, now_ms)]


def is_alive(worker: Worker, now_ms: int) -> bool:
    """Seen lately; one that was seen in the future is a memory from before the clock was set back."""
    return abs(now_ms - worker.seen_ms) < DEAD_AFTER_MS


def forget_lost(client: redis.Redis, keys: Keys, now_ms: int) -> list[str]:
    """Drop workers that have been gone for so long that nobody waits for them, and those that another one follows.

    Returns the names of the former.
    """
    everybody = _entries(client, keys)
    lost = [worker for worker in everybody if abs(now_ms - worker.seen_ms) > FORGET_AFTER_MS]
    followed = _followed(everybody)
    if lost or followed:
        with store_errors(client):
            client.hdel(keys.workers, *(worker.key for worker in lost), *followed)
    return [worker.name for worker in lost]


def attending(client: redis.Redis, keys: Keys) -> dict[str, int]:
    """Workers that were said to have joined and not to have gone since, with their starts."""
    with store_errors(client):
        rows = client.hgetall(keys.attending)
    return {str(name): int(started_ms) for name, started_ms in rows.items()}


def note_attending(
    client: redis.Redis, keys: Keys, came: Mapping[str, int], went: Sequence[str]
) -> None:
    pipe = client.pipeline(transaction=False)
    if came:
        starts: dict[Any, Any] = dict(came)
        pipe.hset(keys.attending, mapping=starts)
    if went:
        pipe.hdel(keys.attending, *went)
    with store_errors(client):
        pipe.execute()


def known(client: redis.Redis, keys: Keys) -> list[Worker]:
    """Every worker that did not say good-bye, by name: the dead ones too, unless another one took their place."""
    everybody = _entries(client, keys)
    followed = _followed(everybody)
    return [worker for worker in everybody if worker.key not in followed]


def _entries(client: redis.Redis, keys: Keys) -> list[Worker]:
    with store_errors(client):
        rows = client.hgetall(keys.workers)
    found = (_worker(str(text)) for text in rows.values())
    return sorted((worker for worker in found if worker), key=lambda worker: worker.key)


def _followed(everybody: Sequence[Worker]) -> set[str]:
    """Keys of those that have said nothing since a worker of the same name started: killed, and started again."""
    newest: dict[str, Worker] = {}
    for worker in everybody:
        if worker.started_ms >= newest.setdefault(worker.name, worker).started_ms:
            newest[worker.name] = worker
    return {
        worker.key
        for worker in everybody
        if newest[worker.name].key != worker.key and newest[worker.name].started_ms > worker.seen_ms
    }


def _worker(text: str) -> Worker | None:
    """None for what no worker wrote: one strange entry must not blind everybody. What a newer one adds is left out."""
    try:
        said: dict[str, Any] = json.loads(text)
        found = Worker(**{name: value for name, value in said.items() if name in _FIELDS})
    except (ValueError, TypeError, AttributeError, RecursionError):
        return None
    counts = (found.polls, found.in_flight, found.rss_bytes, found.slots)
    numbers = (found.seen_ms, found.started_ms, found.polled_ms, *counts)
    named = isinstance(found.name, str) and isinstance(found.instance, str)
    sound = named and all(type(number) is int for number in numbers)
    lists = (found.queues, found.sessions)
    listed = all(
        isinstance(each, list | tuple) and all(isinstance(name, str) for name in each)
        for each in lists
    )
    mapped = all(
        isinstance(each, dict) for each in (found.tags, found.collectors, found.costs, found.broken)
    )
    priced = mapped and all(
        isinstance(cost, int | float) and cost >= 1 for cost in found.costs.values()
    )
    return found if sound and listed and priced else None
