"""The links of one poll, and the walkers on them.

A slow device with much left to read gets several links in parallel. A fast one, a small one and one
that does not respond get one request at a time.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from poller import errors
from poller.collectors.credentials import Credential
from poller.collectors.snmp.engines.engine_protocol import Link
from poller.collectors.snmp.engines.link_pool import LinkKey, LinkPool
from poller.collectors.snmp.read.walker import Walker

Item = TypeVar("Item")
T = TypeVar("T")
Action = Callable[[Walker, Item], Awaitable[T]]

#: A poll that waits for its device for this long counts as slow.
SLOW_S = 0.25


class PollLinks:
    """Opens the links of one poll, and releases all of them at its end."""

    def __init__(
        self,
        pool: LinkPool,
        key: LinkKey,
        credential: Credential | None,
        new_walker: Callable[[Link], Walker],
        *,
        exact: bool,
        codec_only: bool,
    ) -> None:
        self._pool = pool
        self._key = key
        self._credential = credential
        self._new_walker = new_walker
        self._exact = exact
        self._codec_only = codec_only
        self._open: list[tuple[LinkKey, Link]] = []

    async def open_walker(self, number: int = 0) -> Walker:
        """A walker on a link of its own, ready for requests. Raises DeviceErrors."""
        key = self._key._replace(number=number) if number else self._key
        link = self._pool.acquire(key, self._credential, self._codec_only)
        self._open.append((key, link))
        link.exact = self._exact
        walker = self._new_walker(link)
        await walker.handshake()
        return walker

    @property
    def codec_only(self) -> bool:
        """Whether gufo cannot read this agent, in this poll or an earlier one."""
        for _, link in self._open:
            if link.codec_only:
                return True
        return self._codec_only

    def release(self, *, reusable: bool) -> None:
        """Return all links to the pool; a `reusable` one serves the next poll."""
        for key, link in self._open:
            self._pool.release(key, link, reusable=reusable)


class ParallelWalkers:
    """The walkers of one poll, at most `limit`. `open_walker` opens another one.

    `slow`: the last poll was slow, so this one shares its work at once.
    """

    def __init__(
        self,
        first: Walker,
        open_walker: Callable[[int], Awaitable[Walker]],
        limit: int,
        slow: bool = False,
    ) -> None:
        self._walkers = [first]
        self._open_walker = open_walker
        self._limit = limit
        self._now = asyncio.get_running_loop().time
        self._started = self._now()
        self._started_cpu_s = time.thread_time()
        self._share_after_s = 0.0 if slow else SLOW_S

    @property
    def first(self) -> Walker:
        """The walker that every poll has."""
        return self._walkers[0]

    @property
    def window(self) -> int:
        """Prepared requests that may be on their way at a time: several to a slow device."""
        return 1 if self._share_after_s else self._limit

    @property
    def answered(self) -> bool:
        """Whether the device has responded in this poll."""
        return self.first.answered

    @property
    def answered_mono(self) -> float:
        """Instant of the last response in this poll, by the loop's clock."""
        return max(walker.answered_mono for walker in self._walkers)

    @property
    def sent(self) -> int:
        """Requests so far, retries included."""
        return sum(walker.sent for walker in self._walkers)

    @property
    def retried(self) -> int:
        """Requests that were retries."""
        return sum(walker.retried for walker in self._walkers)

    @property
    def is_slow(self) -> bool:
        """Whether one request at a time would have made a slow poll."""
        at_a_time = max(len(self._walkers), self.window)
        return self._waited_s(at_a_time) > SLOW_S

    async def map(self, action: Action[Item, T], items: Sequence[Item]) -> list[T]:
        """Results of `action` for each item, in their order. Its first error ends all work."""
        results: list[T] = []
        for at, item in enumerate(items):
            if at and self._should_share(len(items) - at):
                rest = await self._share(action, items[at:])
                return results + rest
            result = await action(self.first, item)
            results.append(result)
        return results

    def _should_share(self, items_left: int) -> bool:
        """Whether the poll is slow and has work for more than one walker."""
        if self._limit == 1 or items_left == 1:
            return False
        took_s = self._now() - self._started
        return took_s > self._share_after_s and self._waited_s() > self._share_after_s

    def _waited_s(self, walkers: int = 1) -> float:
        """Time that this many walkers waited for the device.

        A busy event loop makes every poll long, and more walkers would only make it busier: the
        time in which the loop worked for this poll and for others does not count.
        """
        took_s = self._now() - self._started
        if took_s * walkers <= SLOW_S:
            return took_s * walkers  # too short in any case: nothing to subtract
        worked_s = time.thread_time() - self._started_cpu_s
        return (took_s - worked_s) * walkers

    async def _share(self, action: Action[Item, T], items: Sequence[Item]) -> list[T]:
        """`map` with all walkers, each of which takes the next item from one queue."""
        queue = iter(enumerate(items))
        results: dict[int, T] = {}

        async def work(number: int) -> None:
            walker = await self._walker(number)
            if walker is not None:
                for at, item in queue:
                    results[at] = await action(walker, item)

        count = min(self._limit, len(items))
        tasks = [asyncio.create_task(work(number)) for number in range(count)]
        try:
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)  # no task uses a link after this
        return [results[at] for at in range(len(items))]

    async def _walker(self, number: int) -> Walker | None:
        """None if no further link can be opened: the other walkers do the work."""
        if number < len(self._walkers):
            return self._walkers[number]
        try:
            walker = await self._open_walker(number)
        except errors.DeviceError:
            return None
        walker.answered = True  # the device answered another walker
        self._walkers.append(walker)
        return walker
