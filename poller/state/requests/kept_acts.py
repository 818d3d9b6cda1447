"""Acts on many devices that Redis remembers for an hour: their progress, and what they changed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

KEEP_S = 3_600


def keep_progress(client: redis.Redis, keys: Keys, name: str, record: Mapping[str, Any]) -> None:
    """Store how far an act is. Raises StoreError."""
    _keep(client, keys.act(name), record)


def progress(client: redis.Redis, keys: Keys, name: str) -> Mapping[str, Any] | None:
    """Return how far an act is; None for an unknown one. Raises StoreError."""
    return _read(client, keys.act(name))


def keep_undo(client: redis.Redis, keys: Keys, name: str, record: Mapping[str, Any]) -> None:
    """Store what an act changed. Raises StoreError."""
    _keep(client, keys.undo(name), record)


def undo(client: redis.Redis, keys: Keys, name: str) -> Mapping[str, Any] | None:
    """Return what an act changed; None for an unknown one. Raises StoreError."""
    return _read(client, keys.undo(name))


def _keep(client: redis.Redis, key: str, record: Mapping[str, Any]) -> None:
    text = json.dumps(record, ensure_ascii=False, separators=(",", ":"))
    with store_errors(client):
        client.set(key, text, ex=KEEP_S)


def _read(client: redis.Redis, key: str) -> Mapping[str, Any] | None:
    with store_errors(client):
        text: Any = client.get(key)
    return json.loads(text) if text else None
