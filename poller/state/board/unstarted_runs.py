"""Targets in flight that no worker has started: their batch waits in a queue, or in a worker that
does not start it.
"""

from __future__ import annotations

from typing import Any

from redis import Redis

from poller.domain.record import run
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: A shorter wait is that of any batch in a busy queue.
LONG_WAIT_MS = 5_000
#: Targets in flight that are looked at; of more, as many at random.
SAMPLE = 500


def estimate(client: Redis, keys: Keys, now_ms: int) -> int:
    """The number of targets that were claimed some seconds ago and are not started.

    Exact for up to `SAMPLE` targets in flight. Raises StoreError.
    """
    with store_errors(client):
        in_flight = client.zcard(keys.inflight)
        members: Any = client.zrandmember(keys.inflight, SAMPLE)
        records: Any = client.hmget(keys.run, members) if members else []

    unstarted = sum(_is_unstarted(record, now_ms) for record in records)
    if len(records) < SAMPLE:
        return unstarted
    return round(unstarted * in_flight / len(records))


def _is_unstarted(record: str | None, now_ms: int) -> bool:
    """Whether a `run` record (token|plan|attempts|call) has no attempt and an old claim."""
    parts = (record or "").split("|")
    if len(parts) != 4 or parts[2] != "0":
        return False
    claimed_ms = run.claimed_ms(parts[0])
    return claimed_ms is not None and now_ms - claimed_ms > LONG_WAIT_MS
