"""Finds the bad parts of a request that a store refuses as a whole, by sending its halves."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from poller import errors

#: Requests for one refused request. A store that refuses everything must not cause thousands.
MAX_REQUESTS = 128

T = TypeVar("T")


def send(
    items: Sequence[T],
    request: Callable[[Sequence[T]], errors.StoreError | None],
    leave_out: Callable[[T, errors.StoreError], None],
) -> None:
    """Send items in their order, so that a refused item costs only itself.

    request: sends items; returns the error of a store that refuses them, None if they are stored.
    leave_out: is told of each single item that the store refuses.
    Raises the last refusal after MAX_REQUESTS requests.
    """
    waiting = [items]
    requests = 0
    while waiting:
        part = waiting.pop()
        refusal = request(part)
        requests += 1
        if refusal is None:
            continue
        if requests >= MAX_REQUESTS:
            raise refusal
        if len(part) == 1:
            leave_out(part[0], refusal)
            continue
        half = len(part) // 2
        waiting += [part[half:], part[:half]]
