"""Sets aside keys of ours whose type is wrong. Such a key stops every script that uses it.

Only an operator or another program can make one. Reconcile and audit rebuild its content from SQL.
"""

from __future__ import annotations

import redis

from poller.state.keys import ROUTINE_MARK, TYPES, Keys
from poller.state.redis_client import store_errors


def set_aside(client: redis.Redis, keys: Keys, suffix: str) -> list[str]:
    """Rename keys of ours that have the wrong type. Returns the old names. Raises StoreError."""
    fixed = {getattr(keys, name): kind for name, kind in TYPES.items()}
    renamed = _rename_wrong(client, fixed, suffix)

    with store_errors(client):
        queues = [str(queue) for queue in client.smembers(keys.queues)]
        own = [str(queue) for queue in client.smembers(keys.own)]
    by_queue: dict[str, str] = {}
    for queue in queues:
        by_queue |= {keys.due(queue): "zset", keys.urgent(queue): "zset"}
    for queue in (*queues, *own):
        by_queue |= {queue: "list", queue + ROUTINE_MARK: "list"}
    return renamed + _rename_wrong(client, by_queue, suffix)


def _rename_wrong(client: redis.Redis, expected: dict[str, str], suffix: str) -> list[str]:
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for name in expected:
            pipe.type(name)
        types = pipe.execute()

        wrong = []
        for name, kind in zip(expected, types, strict=True):
            if kind not in ("none", expected[name]):
                wrong.append(name)
                client.rename(name, f"{name}.{suffix}")
    return wrong
