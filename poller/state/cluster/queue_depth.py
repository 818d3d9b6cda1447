"""Celery's queues as they are in Redis: each is a list per priority."""

from __future__ import annotations

from collections.abc import Iterable

import redis

from poller.state.board.moves import ROUTINE_MARK
from poller.state.redis_client import store_errors


def waiting(client: redis.Redis, queues: Iterable[str]) -> int:
    """Batches that were published to these and not taken yet."""
    pipe = client.pipeline(transaction=False)
    for queue in queues:
        pipe.llen(queue)
        pipe.llen(queue + ROUTINE_MARK)
    pipe.time()  # also when there are none: does the server answer?
    with store_errors(client):
        *lengths, _ = pipe.execute()
    return sum(lengths)
