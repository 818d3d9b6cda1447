"""Requests with an Idempotency-Key: one that runs, then its response, for a day."""

from __future__ import annotations

import json
from typing import Any

import redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

KEEP_S = 86_400
#: A request whose process died leaves its record for this long.
RUNNING_S = 120


def begin(client: redis.Redis, keys: Keys, name: str, fingerprint: str) -> str | None:
    """Note that a request runs. Return the record of an earlier one instead, if there is one."""
    running = json.dumps({"fingerprint": fingerprint})
    with store_errors(client):
        is_new = client.set(keys.request(name), running, nx=True, ex=RUNNING_S)
        kept: Any = None if is_new else client.get(keys.request(name))
    if is_new:
        return None
    return running if kept is None else str(kept)  # None: it expired just now


def finish(client: redis.Redis, keys: Keys, name: str, record: str) -> None:
    """Keep the response of a request."""
    with store_errors(client):
        client.set(keys.request(name), record, ex=KEEP_S)


def forget(client: redis.Redis, keys: Keys, name: str) -> None:
    """Forget a request that failed: the next one with its key is carried out."""
    with store_errors(client):
        client.delete(keys.request(name))
