"""Records of collectors that are isolated or quarantined in the whole cluster, one per release.

The next crashes make a record again that was lost with Redis.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from redis import Redis

from poller.domain.failures import quarantine
from poller.domain.failures.quarantine import Incident, Record, Rules
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


@dataclass(frozen=True, slots=True)
class Release:
    """A collector of one version of its distribution. An upgrade starts without a record."""

    collector: str
    distribution: str  # with its version

    @property
    def field(self) -> str:
        """The name of the record in Redis."""
        return f"{self.collector} {self.distribution}"

    def __str__(self) -> str:
        return f"collector {self.collector} ({self.distribution})"


def read(client: Redis, keys: Keys) -> dict[Release, Record]:
    """Every record. Raises StoreError."""
    with store_errors(client):
        rows = client.hgetall(keys.doubts)

    return parse(rows)


def parse(rows: Mapping[Any, Any]) -> dict[Release, Record]:
    """The records of the rows in Redis."""
    records = {}
    for field, text in rows.items():
        collector, _, distribution = str(field).partition(" ")
        records[Release(collector, distribution)] = quarantine.unpack(str(text))

    return records


def record(
    client: Redis, keys: Keys, release: Release, incident: Incident, rules: Rules
) -> tuple[Record, Record]:
    """Add an incident; returns the record before and after it. Raises StoreError.

    Concurrent calls are serialised: each one sees the record of the call before.
    """

    def add(pipe: Any) -> Any:
        text = pipe.hget(keys.doubts, release.field)
        before = quarantine.unpack(str(text)) if text else Record()
        after = quarantine.record(before, incident, rules)

        pipe.multi()
        pipe.hset(keys.doubts, release.field, after.pack())
        return before, after

    with store_errors(client):
        records = client.transaction(add, keys.doubts, value_from_callable=True)

    return cast("tuple[Record, Record]", records)


def release(client: Redis, keys: Keys, collector: str) -> dict[Release, Record]:
    """Remove and return the records of a collector, of every release. Raises StoreError."""
    removed = {}
    for each, found in read(client, keys).items():
        if each.collector == collector:
            removed[each] = found

    if removed:
        with store_errors(client):
            client.hdel(keys.doubts, *(each.field for each in removed))
    return removed
