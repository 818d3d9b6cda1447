"""One poll, several links: where a device is far and much is left to read, more than one request is under way.

A near device, a small one and one that does not answer see one request at a time.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from poller import errors
from poller.collectors.snmp.read.walker import Walker

Item = TypeVar("Item")
T = TypeVar("T")
Act = Callable[[Walker, Item], Awaitable[T]]

#: A poll that has lasted for so long gets more hands, if there is work for them.
LONG_S = 0.25


class Hands:
    """The walkers of one poll. `more` opens another one; together there are never more than `most`.

    `long`: the last poll lasted long, so this one need not wait to see it.
    """

    def __init__(
        self, first: Walker, more: Callable[[int], Awaitable[Walker]], most: int, long: bool = False
    ) -> None:
        self._walkers = [first]
        self._more = more
        self._most = most
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        self._share_after_s = 0.0 if long else LONG_S

    @property
    def first(self) -> Walker:
        return self._walkers[0]

    @property
    def answered(self) -> bool:
        return self.first.answered

    @property
    def sent(self) -> int:
        """Requests so far, those that were repeated included."""
        return sum(walker.sent for walker in self._walkers)

    @property
    def retried(self) -> int:
        return sum(walker.retried for walker in self._walkers)

    @property
    def took_long(self) -> bool:
        """As one walker alone would see it."""
        return (self._now() - self._started) * len(self._walkers) > LONG_S

    async def do(self, act: Act[Item, T], items: Sequence[Item]) -> list[T]:
        """`act` on every item; results in their order. What it raises ends all of it."""
        done: list[T] = []
        for at, item in enumerate(items):
            if (
                at
                and self._most > 1
                and len(items) - at > 1
                and self._now() - self._started > self._share_after_s
            ):
                return done + await self._share(act, items[at:])
            done.append(await act(self._walkers[0], item))
        return done

    async def _share(self, act: Act[Item, T], items: Sequence[Item]) -> list[T]:
        left = iter(enumerate(items))
        done: dict[int, T] = {}

        async def work(number: int) -> None:
            walker = await self._walker(number)
            if walker is not None:
                for at, item in left:
                    done[at] = await act(walker, item)

        tasks = [asyncio.create_task(work(number)) for number in range(min(self._most, len(items)))]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # nobody uses a link any more
        return [done[at] for at in range(len(items))]

    async def _walker(self, number: int) -> Walker | None:
        """None where another link cannot be had: then the others do the work."""
        if number < len(self._walkers):
            return self._walkers[number]
        try:
            walker = await self._more(number)
        except errors.DeviceError:
            return None
        walker.answered = True  # through another one, it did
        self._walkers.append(walker)
        return walker
