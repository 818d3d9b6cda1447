"""Sets aside keys of ours whose type is wrong. Such a key stops every script that uses it.

Only an operator or another program can make one. Reconcile and audit rebuild its content from SQL.
"""

from __future__ import annotations

from typing import Any

from redis import Redis

from poller.state.keys import ROUTINE_MARK, TYPES, Keys
from poller.state.redis_client import store_errors


def set_aside(client: Redis, keys: Keys, suffix: str) -> list[str]:
    """Rename keys of ours that have the wrong type. Returns the old names. Raises StoreError."""
    fixed = {}
    for name, kind in TYPES.items():
        key = getattr(keys, name)
        fixed[key] = kind

    renamed = _rename_wrong(client, fixed, suffix)

    with store_errors(client):
        queues: Any = client.smembers(keys.queues)
        own: Any = client.smembers(keys.own)
        of_jobs: Any = client.hkeys(keys.job_queues)

    by_queue = {}
    for queue in queues:
        by_queue[keys.due(queue)] = "zset"
        by_queue[keys.urgent(queue)] = "zset"

    for queue in (*queues, *own, *of_jobs):
        by_queue[queue] = "list"
        by_queue[queue + ROUTINE_MARK] = "list"

    return renamed + _rename_wrong(client, by_queue, suffix)


def _rename_wrong(client: Redis, expected: dict[str, str], suffix: str) -> list[str]:
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for name in expected:
            pipe.type(name)

        types = pipe.execute()

        wrong = []
        for name, kind in zip(expected, types, strict=True):
            is_right = kind in ("none", expected[name])
            if not is_right:
                wrong.append(name)
                client.rename(name, f"{name}.{suffix}")

    return wrong
