"""Several links for one poll: never more than allowed, and only where a poll lasts long."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from poller import errors
from poller.collectors.snmp.read.poll_links import ParallelWalkers
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walker
from tests.unit.collectors.snmp_device import Link


class Watched:
    """Work that notes who does it, and how much of it goes on at a time."""

    def __init__(self) -> None:
        self.opened: list[int] = []
        self.by: list[Walker] = []
        self.now = self.most = 0

    async def more(self, number: int) -> Walker:
        self.opened.append(number)
        return walker()

    async def act(self, walker: Walker, item: int) -> int:
        self.by.append(walker)
        self.now += 1
        self.most = max(self.most, self.now)
        for _ in range(3):
            await asyncio.sleep(0)
        self.now -= 1
        if item < 0:
            raise errors.DeviceTimeout("silence")
        return item * 10


def walker() -> Walker:
    return Walker(Link({}), RetryPolicy(1, 0, 1e12), RequestSizes(50), "it")


def run(
    items: list[int], limit: int, slow: bool, more: Callable[[int], Awaitable[Walker]] | None = None
) -> Watched:
    async def work() -> Watched:
        watched = Watched()
        walkers = ParallelWalkers(walker(), more or watched.more, limit, slow)
        assert await walkers.map(watched.act, items) == [item * 10 for item in items]
        return watched

    return asyncio.run(work())


def test_a_poll_that_lasted_long_shares_the_work() -> None:
    """All but the first piece, which shows that somebody is there; results keep their order."""
    watched = run(list(range(9)), limit=2, slow=True)
    assert (watched.most, watched.opened) == (2, [1])
    assert len(set(map(id, watched.by))) == 2


def test_one_that_does_not_uses_one_link() -> None:
    watched = run(list(range(9)), limit=4, slow=False)
    assert (watched.most, watched.opened) == (1, [])


def test_the_limit_holds() -> None:
    assert run(list(range(30)), limit=3, slow=True).most == 3
    assert run(list(range(30)), limit=1, slow=True).most == 1


def test_there_are_no_more_links_than_pieces_of_work() -> None:
    assert run([1, 2, 3], limit=8, slow=True).opened == [1]


def test_where_no_other_link_can_be_had_one_does_it_all() -> None:
    async def refused(number: int) -> Walker:
        raise errors.DeviceUnreachable("no more sockets")

    assert run(list(range(9)), limit=2, slow=True, more=refused).most == 1


def test_an_error_ends_the_work_of_all() -> None:
    """And nobody is left running when it is told."""

    async def work() -> tuple[int, int]:
        watched = Watched()
        with pytest.raises(errors.DeviceTimeout):
            await ParallelWalkers(walker(), watched.more, 2, slow=True).map(
                watched.act, [1, 2, -1, 3, 4, 5, 6, 7]
            )
        return len(watched.by), len(asyncio.all_tasks())

    started, tasks = asyncio.run(work())
    assert started < 8
    assert tasks == 1
