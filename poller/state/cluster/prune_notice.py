"""Why the last run of the job `prune` kept rows past their retention, for the overview."""

from __future__ import annotations

from typing import Any

from redis import Redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

REASON = "reason"
TEXT = "text"


def store(client: Redis, keys: Keys, reason: str, text: str) -> bool:
    """Store a notice. Returns whether its reason is another than before. Raises StoreError."""
    with store_errors(client):
        before: Any = client.hget(keys.prune, REASON)
        client.hset(keys.prune, mapping={REASON: reason, TEXT: text})
    return bool(before != reason)


def clear(client: Redis, keys: Keys) -> None:
    """Remove the notice. Raises StoreError."""
    with store_errors(client):
        client.delete(keys.prune)
