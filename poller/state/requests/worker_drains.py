"""The drains of workers that people asked for, by the name of the worker.

A drain outlives a restart of its worker, and ends by itself. Without Redis it is forgotten.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from dataclasses import asdict
from functools import cache
from typing import Any

import redis
from pydantic import TypeAdapter, ValidationError

from poller.domain.scheduling.worker_drain import Drain
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: The message that makes workers look at their drains at once.
WAKE = "drains"


def of_worker(client: redis.Redis, keys: Keys, name: str) -> Drain | None:
    """Return the drain of one worker; None without one, or after its end. Raises StoreError."""
    pipe = client.pipeline(transaction=False)
    pipe.hget(keys.drains, name)
    pipe.time()
    with store_errors(client):
        text, (seconds, micros) = pipe.execute()
    drain = _parse(text) if text else None
    now_ms = int(seconds) * 1000 + int(micros) // 1000
    return drain if drain is not None and drain.until_ms > now_ms else None


def listing(client: redis.Redis, keys: Keys, now_ms: int) -> dict[str, Drain]:
    """Return the drains that hold, by worker. Raises StoreError."""
    with store_errors(client):
        rows: Any = client.hgetall(keys.drains)
    return {name: drain for name, drain in _drains(rows).items() if drain.until_ms > now_ms}


def store(client: redis.Redis, keys: Keys, names: Collection[str], drain: Drain) -> None:
    """Drain these workers, and remove the drains that are over. Raises StoreError."""
    with store_errors(client):
        rows: Any = client.hgetall(keys.drains)
        over = [
            name
            for name, each in _drains(rows).items()
            if each.until_ms <= drain.since_ms and name not in names
        ]
        pipe = client.pipeline(transaction=False)
        pipe.hset(keys.drains, mapping=dict.fromkeys(names, json.dumps(asdict(drain))))
        if over:
            pipe.hdel(keys.drains, *over)
        pipe.publish(keys.domains, WAKE)
        pipe.execute()


def end(client: redis.Redis, keys: Keys, names: Collection[str]) -> None:
    """End the drains of these workers. Raises StoreError."""
    pipe = client.pipeline(transaction=False)
    pipe.hdel(keys.drains, *names)
    pipe.publish(keys.domains, WAKE)
    with store_errors(client):
        pipe.execute()


def _drains(rows: Mapping[str, str]) -> dict[str, Drain]:
    """The drains of the rows in Redis. A damaged one is left out."""
    found = {name: _parse(text) for name, text in rows.items()}
    return {name: drain for name, drain in found.items() if drain is not None}


@cache
def _adapter() -> TypeAdapter[Drain]:
    return TypeAdapter(Drain)


def _parse(text: str) -> Drain | None:
    try:
        return _adapter().validate_json(text)
    except ValidationError:
        return None
