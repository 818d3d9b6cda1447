"""Which queues of jobs a living worker takes from, and since when the others have none."""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from typing import Any

from redis import Redis

from poller.domain.jobs.job_queue import QUEUE_PREFIX
from poller.state.cluster import worker_registry
from poller.state.keys import Keys
from poller.state.redis_client import store_errors


class ServedQueues:
    """The leader's view of the registry of workers.

    A queue stays served for some seconds after its last worker is gone: after a flush of Redis, or
    a step of its clock, all living workers renew their heartbeats in that time.
    """

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._redis = client
        self._keys = keys
        self._until_mono: dict[str, float] = {}  # queue -> served until then at least

    def refresh(self, now_ms: int, keep: Collection[str] = ()) -> set[str]:
        """The served queues. Those of `keep` count as served now. Raises StoreError.

        `now_ms` is the board's clock.
        """
        workers = worker_registry.living(self._redis, self._keys, now_ms)
        queues = {queue for worker in workers for queue in worker.queues}
        found = {queue for queue in queues if queue.startswith(QUEUE_PREFIX)}
        if found:
            seen: dict[Any, Any] = dict.fromkeys(found, now_ms)
            with store_errors(self._redis):
                self._redis.hset(self._keys.job_queues, mapping=seen)

        now_mono = time.monotonic()
        until_mono = now_mono + worker_registry.ALL_HEARTBEATS_RENEWED_S
        self._until_mono |= dict.fromkeys((*found, *keep), until_mono)
        return {queue for queue, until in self._until_mono.items() if until > now_mono}

    def unserved_ms(self, queues: Collection[str], now_ms: int) -> dict[str, int]:
        """How long each of these queues has had no worker, in ms. Raises StoreError.

        A queue that no leader has seen with a worker counts from now on.
        """
        if not queues:
            return {}
        names = sorted(queues)
        with store_errors(self._redis):
            seen: Any = self._redis.hmget(self._keys.job_queues, names)
        last = dict(zip(names, seen, strict=True))
        self._note_unknown(last, now_ms)
        return {name: now_ms - _instant(text, now_ms) for name, text in last.items()}

    def _note_unknown(self, last: Mapping[str, str | None], now_ms: int) -> None:
        unknown = [name for name, text in last.items() if text is None]
        if unknown:
            seen: dict[Any, Any] = dict.fromkeys(unknown, now_ms)
            with store_errors(self._redis):
                self._redis.hset(self._keys.job_queues, mapping=seen)


def _instant(text: str | None, now_ms: int) -> int:
    """The instant; now, if another program damaged it or the clock was set back."""
    if text is None or not text.isdecimal():
        return now_ms
    return min(int(text), now_ms)
