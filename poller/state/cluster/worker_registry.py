"""The registry of workers. A heartbeat holds the queues and collectors of its worker."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cache
from typing import Any

from pydantic import TypeAdapter, ValidationError
from redis import Redis

from poller.domain.record.overview import Worker
from poller.state.board.lua_scripts import Scripts
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: A worker writes a heartbeat this often.
HEARTBEAT_S = 2.0
#: A worker silent for this long missed a heartbeat; a quarter of one is allowed for delays.
ONE_HEARTBEAT_MISSED_MS = round(1.25 * HEARTBEAT_S * 1000)
#: A worker silent for this long missed two heartbeats; a quarter of one is allowed for delays.
TWO_HEARTBEATS_MISSED_MS = round(2.25 * HEARTBEAT_S * 1000)
#: Within this time every living worker writes a heartbeat, with the time of a clock that was set.
ALL_HEARTBEATS_RENEWED_S = 2.5 * HEARTBEAT_S
#: A worker silent for this long missed five heartbeats and counts as dead.
DEAD_AFTER_MS = round(5 * HEARTBEAT_S * 1000)
#: A worker dead for this long does not come back under its name, and is forgotten.
FORGET_AFTER_MS = 15 * 60_000


def announce(client: Redis, keys: Keys, worker: Worker, wake_leader: bool = False) -> int:
    """Write a heartbeat at the server's time, and return that time. Raises StoreError."""
    fields = asdict(worker)
    del fields["seen_ms"]
    before = json.dumps(fields).removesuffix("}") + ', "seen_ms": '
    arguments = [worker.key, before, "}", int(wake_leader)]
    return int(Scripts(client, keys).run("announce", arguments))


def leave(client: Redis, keys: Keys, key: str) -> None:
    """Remove the entry of a worker that stops. Raises StoreError."""
    with store_errors(client):
        client.hdel(keys.workers, key)


def registered(client: Redis, keys: Keys) -> list[Worker]:
    """Workers that did not leave, sorted by key. Raises StoreError.

    Dead workers are among them, unless a restarted one supersedes them.
    """
    return not_superseded(_entries(client, keys))


def not_superseded(workers: Sequence[Worker]) -> list[Worker]:
    """Entries without those of killed workers that were started again."""
    superseded = _superseded(workers)
    return [worker for worker in workers if worker.key not in superseded]


def living(client: Redis, keys: Keys, now_ms: int) -> list[Worker]:
    """Workers with a recent heartbeat, sorted by key. Raises StoreError."""
    return [worker for worker in registered(client, keys) if is_alive(worker, now_ms)]


def is_alive(worker: Worker, now_ms: int) -> bool:
    """Whether the heartbeat is recent. A future one dates from before the clock was set back."""
    return abs(now_ms - worker.seen_ms) < DEAD_AFTER_MS


def forget_lost(client: Redis, keys: Keys, workers: Sequence[Worker], now_ms: int) -> list[str]:
    """Remove entries of workers that have been dead for long, and superseded ones.

    Returns the names of the workers that have been dead for long. Raises StoreError.
    """
    lost = [worker for worker in workers if abs(now_ms - worker.seen_ms) > FORGET_AFTER_MS]
    removed = {worker.key for worker in lost} | _superseded(workers)
    if removed:
        with store_errors(client):
            client.hdel(keys.workers, *removed)
    return [worker.name for worker in lost]


def attending(client: Redis, keys: Keys) -> dict[str, int]:
    """Workers whose arrival was published, but no departure; with their starts in ms."""
    with store_errors(client):
        rows: Any = client.hgetall(keys.attending)

    starts = {}
    for key, started_ms in rows.items():
        starts[key] = int(started_ms)

    return starts


def store_attending(
    client: Redis, keys: Keys, came: Mapping[str, int], went: Sequence[str]
) -> None:
    """Store which arrivals and departures of workers were published. Raises StoreError."""
    pipe = client.pipeline(transaction=False)
    if came:
        starts: dict[Any, Any] = dict(came)
        pipe.hset(keys.attending, mapping=starts)
    if went:
        pipe.hdel(keys.attending, *went)

    with store_errors(client):
        pipe.execute()


def _entries(client: Redis, keys: Keys) -> list[Worker]:
    with store_errors(client):
        rows: Any = client.hgetall(keys.workers)

    return parse_entries(rows)


def parse_entries(rows: Mapping[str, str]) -> list[Worker]:
    """All entries of the registry, sorted by key."""
    workers = []
    for text in rows.values():
        worker = _parse(str(text))
        if worker:
            workers.append(worker)

    return sorted(workers, key=_key)


def _key(worker: Worker) -> str:
    return worker.key


def _superseded(workers: Sequence[Worker]) -> set[str]:
    """Keys of killed workers: another one of the same name started after their last heartbeat."""
    newest: dict[str, Worker] = {}
    for worker in workers:
        if worker.started_ms >= newest.setdefault(worker.name, worker).started_ms:
            newest[worker.name] = worker

    superseded = set()
    for worker in workers:
        successor = newest[worker.name]
        if successor.key != worker.key and successor.started_ms > worker.seen_ms:
            superseded.add(worker.key)

    return superseded


@cache
def _adapter() -> TypeAdapter[Worker]:
    return TypeAdapter(Worker)


def _parse(text: str) -> Worker | None:
    """The worker of an entry without the fields of a newer release.

    None for an entry that no worker wrote: it must not hide the others.
    """
    try:
        worker = _adapter().validate_json(text, strict=True)
    except ValidationError:
        return None
    valid_costs = all(cost >= 1 for cost in worker.costs.values())
    return worker if valid_costs else None
