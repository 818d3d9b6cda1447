"""What became of notifications, counted for all listeners together beside the board's other totals."""

from __future__ import annotations

from collections.abc import Mapping

import redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors


def count(client: redis.Redis, keys: Keys, more: Mapping[str, int]) -> None:
    """Add to the totals; names are those of domain/record/overview.py's TRAP_RESULTS."""
    if not more:
        return
    pipe = client.pipeline(transaction=False)
    for name, number in more.items():
        pipe.hincrby(keys.totals, f"traps_{name}", number)
    with store_errors(client):
        pipe.execute()
