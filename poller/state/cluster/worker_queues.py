"""Celery's queues in Redis: one list per priority. Some queues belong to a single worker.

Batches in the queue of a lost worker go to the shared queue, instead of waiting for their leases.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from typing import Any

from redis import Redis
from redis.client import Pipeline

from poller.domain.batched import batched
from poller.state.board.lua_scripts import Scripts
from poller.state.keys import ROUTINE_MARK, Keys
from poller.state.redis_client import store_errors

#: kombu's prefix for the binding of a queue.
_BINDING = "_kombu.binding."


def own_depths(scripts: Scripts) -> dict[str, int]:
    """The queues of single workers, and the batches that wait in each. Raises StoreError."""
    return _own_depths(scripts.run("own_depths", [ROUTINE_MARK]))


def add_own_depths(scripts: Scripts, pipe: Pipeline) -> None:
    """Add the question for `read_own_depths` to commands that go to the server together."""
    scripts.add(pipe, "own_depths", [ROUTINE_MARK])


def read_own_depths(scripts: Scripts, reply: Any) -> dict[str, int]:
    """The answer to `add_own_depths`. Raises StoreError."""
    return _own_depths(scripts.reply("own_depths", [ROUTINE_MARK], reply))


def _own_depths(reply: Sequence[Any]) -> dict[str, int]:
    """The depths by queue, of names and numbers in turns."""
    return {str(queue): int(depth) for queue, depth in batched(reply, 2)}


def add_own(client: Redis, keys: Keys, names: Collection[str]) -> None:
    """Store queues of single workers before their first batch: the next leader needs the list."""
    with store_errors(client):
        client.sadd(keys.own, *names)


def forget(client: Redis, keys: Keys, name: str) -> None:
    """Delete the queue of a worker that is gone for good. `start` would refuse its batches."""
    with store_errors(client):
        client.srem(keys.own, name)
        client.delete(name, name + ROUTINE_MARK, _BINDING + name)


def depths(client: Redis, names: Iterable[str]) -> dict[str, int]:
    """The number of batches that wait in each queue."""
    queues = list(names)
    if not queues:
        return {}
    pipe = client.pipeline(transaction=False)
    for queue in queues:
        pipe.llen(queue)
        pipe.llen(queue + ROUTINE_MARK)

    with store_errors(client):
        lengths = pipe.execute()

    by_queue = {}
    for queue, (urgent, routine) in zip(queues, batched(lengths, 2), strict=True):
        by_queue[queue] = urgent + routine

    return by_queue


def total_depth(client: Redis, names: Iterable[str]) -> int:
    """The number of batches in these queues. Raises StoreUnavailable even for no queue."""
    with store_errors(client):
        client.ping()

    return sum(depths(client, names).values())


def hand_over(client: Redis, name: str, to: str) -> int:
    """Move all batches of a queue to the front of another one. Returns how many batches.

    The worker may live and take one of them at the same time: each batch moves in one step, so
    exactly one side gets it.
    """
    moved = 0
    with store_errors(client):
        for mark in ("", ROUTINE_MARK):
            while client.lmove(name + mark, to + mark, "LEFT", "RIGHT"):
                moved += 1

    return moved
