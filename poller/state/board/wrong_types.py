"""A key of ours that is not of the type it should be stops every script that meets it: it is set aside, not lost.

Nobody but a person or another program makes one. What it held is rebuilt from SQL by reconcile and audit.
"""

from __future__ import annotations

import redis

from poller.state.board.moves import ROUTINE_MARK
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

TYPES = {
    "zset": ("inflight", "parked", "held", "standbys"),
    "set": ("queues", "returned", "own"),
    "hash": (
        *("spec", "run", "edited", "status", "counts", "needs", "dark", "barred"),
        *("board", "leader", "workers", "attending", "totals"),
    ),
    "string": ("outbox", "epoch", "recorded", "lock"),
    "list": ("errors",),
    "stream": ("events",),
}


def set_aside(client: redis.Redis, keys: Keys, suffix: str) -> list[str]:
    """Rename every key of ours that has the wrong type; returns their names."""
    moved = _rename(
        client,
        {getattr(keys, name): kind for kind, names in TYPES.items() for name in names},
        suffix,
    )
    with store_errors(client):
        queues = [str(queue) for queue in client.smembers(keys.queues)]
        own = [str(queue) for queue in client.smembers(keys.own)]
    waiting = {key(queue): "zset" for queue in queues for key in (keys.due, keys.urgent)}
    lists = {name: "list" for queue in (*queues, *own) for name in (queue, queue + ROUTINE_MARK)}
    return moved + _rename(client, waiting | lists, suffix)


def _rename(client: redis.Redis, expected: dict[str, str], suffix: str) -> list[str]:
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for name in expected:
            pipe.type(name)
        wrong = [
            name
            for name, kind in zip(expected, pipe.execute(), strict=True)
            if kind not in ("none", expected[name])
        ]
        for name in wrong:
            client.rename(name, f"{name}.{suffix}")
    return wrong
