"""Snapshots: one read of the board per second for any number of viewers."""

from __future__ import annotations

import asyncio

import web_overviews as fleet

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.api.snapshot import Snapshots
from poller.web.backend_queries import usable_stores


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
    """A hundred simultaneous requests cause one read of the board."""
    read = Reader()

    async def get_all() -> None:
        snapshots = Snapshots(read, usable_stores, Clock())
        await asyncio.gather(*(snapshots.get() for _ in range(100)))

    asyncio.run(get_all())
    assert read.calls == 1


def test_the_board_is_read_again_after_a_second() -> None:
    """A snapshot expires after one second."""
    read, clock = Reader(), Clock()

    async def get_all() -> None:
        snapshots = Snapshots(read, usable_stores, clock)
        for clock.now in (0.0, 0.99, 1.0, 1.5):
            await snapshots.get()

    asyncio.run(get_all())
    assert read.calls == 2


def test_an_error_keeps_the_last_overview() -> None:
    """An error of the store is in the snapshot, and the store is read again a second later."""
    read, clock = Reader(), Clock()

    async def get_all() -> list[tuple[bool, str]]:
        snapshots = Snapshots(read, usable_stores, clock)
        snapshots_seen = []
        for clock.now, read.broken in ((0.0, False), (1.0, True), (2.0, False)):
            snapshot = await snapshots.get()
            snapshots_seen.append((snapshot.overview is fleet.HEALTHY, snapshot.error))
        return snapshots_seen

    assert asyncio.run(get_all()) == [
        (True, ""),
        (True, "cannot use Redis (ConnectionError)"),
        (True, ""),
    ]
