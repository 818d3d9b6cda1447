"""Which collectors are isolated or quarantined in the whole cluster? One record per collector and release.

A record that is lost with Redis is made anew by the next crashes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import redis

from poller.domain.failures import quarantine
from poller.domain.failures.quarantine import Incident, Record, Rules
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


@dataclass(frozen=True, slots=True)
class Release:
    """A collector of one version of its distribution: an upgraded one starts anew."""

    collector: str
    distribution: str  # with its version

    @property
    def field(self) -> str:
        return f"{self.collector} {self.distribution}"

    def __str__(self) -> str:
        return f"collector {self.collector} ({self.distribution})"


def _release(field: str) -> Release:
    collector, _, distribution = field.partition(" ")
    return Release(collector, distribution)


def read(client: redis.Redis, keys: Keys) -> dict[Release, Record]:
    """Every record there is; hardly ever any."""
    with store_errors(client):
        rows = client.hgetall(keys.doubts)
    return {_release(str(field)): quarantine.unpack(str(text)) for field, text in rows.items()}


def record(
    client: redis.Redis, keys: Keys, release: Release, doubt: Incident, rules: Rules
) -> tuple[Record, Record]:
    """Add a doubt; the record before and after it. Of several at once each sees the one before."""

    def change(pipe: Any) -> Any:
        text = pipe.hget(keys.doubts, release.field)
        before = quarantine.unpack(str(text)) if text else Record()
        after = quarantine.record(before, doubt, rules)
        pipe.multi()
        pipe.hset(keys.doubts, release.field, after.pack())
        return before, after

    with store_errors(client):
        found = client.transaction(change, keys.doubts, value_from_callable=True)
    return cast("tuple[Record, Record]", found)


def release(client: redis.Redis, keys: Keys, collector: str) -> dict[Release, Record]:
    """Forget all that is held against a collector, in every version; what it was."""
    held = {
        each: found for each, found in read(client, keys).items() if each.collector == collector
    }
    if held:
        with store_errors(client):
            client.hdel(keys.doubts, *(each.field for each in held))
    return held
