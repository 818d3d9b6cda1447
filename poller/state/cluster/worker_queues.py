"""Queues of single workers. What waits in one whose worker is gone must not wait for a lease: it goes to all."""

from __future__ import annotations

from collections.abc import Collection, Iterable

import redis

from poller.state.board.moves import ROUTINE_MARK
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: How kombu calls what it remembers of a queue.
_BINDING = "_kombu.binding."


def known(client: redis.Redis, keys: Keys) -> set[str]:
    """Every queue of a single worker that was ever published to, and not forgotten since."""
    with store_errors(client):
        return {str(name) for name in client.smembers(keys.own)}


def note(client: redis.Redis, keys: Keys, names: Collection[str]) -> None:
    """Before the first batch goes there: whoever leads next must know where to look."""
    with store_errors(client):
        client.sadd(keys.own, *names)


def forget(client: redis.Redis, keys: Keys, name: str) -> None:
    """Its worker will not come back. What is in it by now is refused by `start` anyway."""
    with store_errors(client):
        client.srem(keys.own, name)
        client.delete(name, name + ROUTINE_MARK, _BINDING + name)


def depths(client: redis.Redis, names: Iterable[str]) -> dict[str, int]:
    """Batches that wait in each of these queues."""
    asked = list(names)
    with store_errors(client):
        pipe = client.pipeline(transaction=False)
        for name in asked:
            pipe.llen(name)
            pipe.llen(name + ROUTINE_MARK)
        found = pipe.execute() if asked else []
    return {name: found[2 * at] + found[2 * at + 1] for at, name in enumerate(asked)}


def hand_over(client: redis.Redis, name: str, to: str) -> int:
    """Move what waits there to another queue, where it is next. Returns how many batches.

    The worker may live, and take one of them at the same time: each is moved in one step, so that one of both has it.
    """
    moved = 0
    with store_errors(client):
        for mark in ("", ROUTINE_MARK):
            while client.lmove(name + mark, to + mark, "LEFT", "RIGHT"):
                moved += 1
    return moved
