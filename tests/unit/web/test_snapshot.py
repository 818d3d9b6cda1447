"""One look per second, however many look on."""

from __future__ import annotations

import asyncio

import web_overviews as fleet

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.api.snapshot import Snapshots


class Reader:
    """Counts its calls; fails while `broken`."""

    def __init__(self) -> None:
        self.calls = 0
        self.broken = False

    def __call__(self) -> Overview:
        self.calls += 1
        if self.broken:
            raise errors.StoreUnavailable("cannot use Redis", "ConnectionError")
        return fleet.HEALTHY


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_many_viewers_cost_one_read() -> None:
    """A hundred simultaneous questions are one question to the board."""
    read = Reader()

    async def look() -> None:
        snapshots = Snapshots(read, Clock())
        await asyncio.gather(*(snapshots.get() for _ in range(100)))

    asyncio.run(look())
    assert read.calls == 1


def test_a_second_later_it_is_read_again() -> None:
    """A snapshot is kept for less than a second more than a second."""
    read, clock = Reader(), Clock()

    async def look() -> None:
        snapshots = Snapshots(read, clock)
        for clock.now in (0.0, 0.99, 1.0, 1.5):
            await snapshots.get()

    asyncio.run(look())
    assert read.calls == 2


def test_trouble_keeps_the_last_numbers_and_names_itself() -> None:
    """A store that does not answer is told, not thrown, and it is asked again a second later."""
    read, clock = Reader(), Clock()

    async def look() -> list[tuple[bool, str]]:
        snapshots = Snapshots(read, clock)
        seen = []
        for clock.now, read.broken in ((0.0, False), (1.0, True), (2.0, False)):
            snapshot = await snapshots.get()
            seen.append((snapshot.overview is fleet.HEALTHY, snapshot.trouble))
        return seen

    assert asyncio.run(look()) == [
        (True, ""),
        (True, "cannot use Redis (ConnectionError)"),
        (True, ""),
    ]
