"""Counters of failed log-ins. Each ends by itself after its window."""

from __future__ import annotations

import redis

from poller.domain.access.login_limits import Counted, Limit
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


def count(client: redis.Redis, keys: Keys, subject: str, limit: Limit) -> Counted:
    """Count an attempt."""
    key = keys.logins(subject)
    with store_errors(client), client.pipeline() as pipeline:
        pipeline.set(key, 0, ex=limit.window_s, nx=True)
        pipeline.incr(key)
        pipeline.ttl(key)
        _, attempts, left_s = pipeline.execute()
    wait_s = 0 if attempts <= limit.failures else max(1, int(left_s))
    return Counted(int(attempts), wait_s)


def take_back(client: redis.Redis, keys: Keys, subject: str, limit: Limit) -> None:
    """Take one counted attempt back."""
    key = keys.logins(subject)
    with store_errors(client), client.pipeline() as pipeline:
        # A counter that ended meanwhile would come back without an end.
        pipeline.set(key, 1, ex=limit.window_s, nx=True)
        pipeline.decr(key)
        pipeline.execute()
