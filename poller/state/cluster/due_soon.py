"""The targets that are due within the next seconds, counted."""

from __future__ import annotations

from collections.abc import Sequence

from redis import Redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors


def count(
    client: Redis, keys: Keys, queues: Sequence[str], now_ms: int, within_ms: int
) -> dict[str, int]:
    """Return by queue the number of targets that are due at most that much later, or overdue.

    One round trip, two counts for each queue. Raises StoreError.
    """
    pipe = client.pipeline(transaction=False)
    for queue in queues:
        for place in (keys.due(queue), keys.urgent(queue)):
            pipe.zcount(place, "-inf", now_ms + within_ms)
    with store_errors(client):
        counts = pipe.execute()
    pairs = zip(counts[::2], counts[1::2], strict=True)
    return {
        queue: int(due) + int(urgent) for queue, (due, urgent) in zip(queues, pairs, strict=True)
    }
