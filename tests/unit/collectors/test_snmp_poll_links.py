"""A slow poll uses several links, never more than its limit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from poller import errors
from poller.collectors.snmp.read import poll_links
from poller.collectors.snmp.read.poll_links import ParallelWalkers
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walker
from tests.unit.collectors.snmp_device import Link


class RecordedWork:
    """Work that records its walkers, and how many of them run at a time."""

    def __init__(self) -> None:
        self.opened: list[int] = []
        self.walkers: list[Walker] = []
        self.running = self.max_running = 0

    async def open_walker(self, number: int) -> Walker:
        self.opened.append(number)
        return walker()

    async def act(self, walker: Walker, item: int) -> int:
        self.walkers.append(walker)
        self.running += 1
        self.max_running = max(self.max_running, self.running)
        for _ in range(3):
            await asyncio.sleep(0)
        self.running -= 1
        if item < 0:
            raise errors.DeviceTimeout("silence")
        return item * 10


def walker() -> Walker:
    return Walker(Link({}), RetryPolicy(1, 0, 1e12), RequestSizes(50), "it")


def run(
    items: list[int], limit: int, slow: bool, more: Callable[[int], Awaitable[Walker]] | None = None
) -> RecordedWork:
    async def work() -> RecordedWork:
        work_done = RecordedWork()
        walkers = ParallelWalkers(walker(), more or work_done.open_walker, limit, slow)
        assert await walkers.map(work_done.act, items) == [item * 10 for item in items]
        return work_done

    return asyncio.run(work())


def test_a_slow_poll_shares_its_work() -> None:
    """The first item shows that the device responds; results keep their order."""
    work_done = run(list(range(9)), limit=2, slow=True)
    assert (work_done.max_running, work_done.opened) == (2, [1])
    assert len(set(map(id, work_done.walkers))) == 2


def test_a_fast_poll_uses_one_link() -> None:
    work_done = run(list(range(9)), limit=4, slow=False)
    assert (work_done.max_running, work_done.opened) == (1, [])


def test_the_number_of_links_stays_within_its_limit() -> None:
    assert run(list(range(30)), limit=3, slow=True).max_running == 3
    assert run(list(range(30)), limit=1, slow=True).max_running == 1


def test_there_are_no_more_links_than_pieces_of_work() -> None:
    assert run([1, 2, 3], limit=8, slow=True).opened == [1]


def test_one_walker_does_all_work_if_no_other_link_opens() -> None:
    async def refused(number: int) -> Walker:
        raise errors.DeviceUnreachable("no more sockets")

    assert run(list(range(9)), limit=2, slow=True, more=refused).max_running == 1


def test_an_error_ends_the_work_of_all_walkers() -> None:
    """No task is left when the error is raised."""

    async def work() -> tuple[int, int]:
        work_done = RecordedWork()
        with pytest.raises(errors.DeviceTimeout):
            await ParallelWalkers(walker(), work_done.open_walker, 2, slow=True).map(
                work_done.act, [1, 2, -1, 3, 4, 5, 6, 7]
            )
        return len(work_done.walkers), len(asyncio.all_tasks())

    started, tasks = asyncio.run(work())
    assert started < 8
    assert tasks == 1


@pytest.mark.parametrize(("worked_s", "is_slow"), [(0.0, True), (1.9, False)])
def test_the_work_of_the_event_loop_makes_no_device_slow(
    worked_s: float, is_slow: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two seconds that a poll took, the time in which the loop worked does not count."""

    async def work() -> tuple[bool, list[int]]:
        work_done = RecordedWork()
        cpu_s = iter([10.0, *[10.0 + worked_s] * 20])
        monkeypatch.setattr(poll_links.time, "thread_time", lambda: next(cpu_s))
        walkers = ParallelWalkers(walker(), work_done.open_walker, 2)
        walkers._started -= 2.0
        await walkers.map(work_done.act, [1, 2, 3])
        return walkers.is_slow, work_done.opened

    assert asyncio.run(work()) == (is_slow, [1] if is_slow else [])
