"""Requests with an Idempotency-Key: the record of one that acts, then its response, for a day.

A record outlives its process. A request that ended without a response may have acted, so its key
never acts again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

import redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

KEEP_S = 86_400
#: A request that runs says so within this time, again and again.
LEASE_S = 60


@dataclass(frozen=True, slots=True)
class KeptRequest:
    """An earlier request with the same key."""

    fingerprint: str
    is_running: bool
    status: int | None  # None: it runs, or it ended without a response
    body: str | None  # None: there is no response, or it was too large


class RequestRecord:
    """The record of one request. `owner` tells it from others with its key."""

    def __init__(self, client: redis.Redis, keys: Keys, name: str, owner: str) -> None:
        self._client = client
        self._key = keys.request(name)
        self._keys = keys
        self._owner = owner

    def begin(self, fingerprint: str) -> KeptRequest | None:
        """Note that the request runs; or return the earlier one with its key. Raises StoreError.

        The sign of life is there before the record, so that no reader finds one without the other.
        """
        record = {"fingerprint": fingerprint, "owner": self._owner}
        with store_errors(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.set(self._sign(self._owner), "", ex=LEASE_S)
            pipe.set(self._key, json.dumps(record), nx=True, ex=KEEP_S)
            pipe.get(self._key)
            kept = json.loads(pipe.execute()[-1])
            if kept.get("owner") == self._owner:
                return None
            signs: Any = self._client.exists(self._sign(kept.get("owner", "")))
        return KeptRequest(kept["fingerprint"], bool(signs), kept.get("status"), kept.get("body"))

    def extend(self) -> None:
        """Say that the request still runs. Raises StoreError."""
        with store_errors(self._client):
            self._client.set(self._sign(self._owner), "", ex=LEASE_S)

    def finish(self, fingerprint: str, status: int, body: str | None) -> None:
        """Keep the response. Raises StoreError."""
        record = {"fingerprint": fingerprint, "status": status, "body": body}
        with store_errors(self._client), self._client.pipeline(transaction=True) as pipe:
            pipe.set(self._key, json.dumps(record), ex=KEEP_S)
            pipe.delete(self._sign(self._owner))
            pipe.execute()

    def give_up(self) -> None:
        """Leave the record without a response: the request may have acted. Raises StoreError."""
        with store_errors(self._client):
            self._client.delete(self._sign(self._owner))

    def forget(self) -> None:
        """Forget a request that was refused: the next one acts. Raises StoreError."""
        with store_errors(self._client):
            self._client.delete(self._key, self._sign(self._owner))

    def _sign(self, owner: str) -> str:
        return self._keys.running_request(owner)
