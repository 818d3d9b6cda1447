"""Snapshots of the board: at most one read per second, shared by all viewers of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.record.overview import Overview
from poller.presentation.health import Health, Stores
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.pages.fleet import overview_page
from poller.web.pages.fleet.overview_page import OverviewView

MAX_AGE_S = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest overview that could be read, the state of the stores, and the verdict on both."""

    overview: Overview | None
    stores: Stores
    view: OverviewView
    fleet: FleetPicture = field(default_factory=FleetPicture)

    @property
    def error(self) -> str:
        """Why there is no newer overview; "" when the last read succeeded."""
        return self.stores.redis_error

    @property
    def health(self) -> Health:
        return self.view.health


class Snapshots:
    """The latest snapshot, for one event loop. One viewer renews an old one, the others wait."""

    def __init__(
        self,
        read: Callable[[], Overview],
        check_stores: Callable[[Overview | None, str], Stores],
        clock: Callable[[], float] = time.monotonic,
        read_fleet: Callable[[], FleetPicture] = FleetPicture,
    ) -> None:
        self._read = read
        self._check_stores = check_stores
        self._read_fleet = read_fleet
        self._clock = clock
        self._lock = asyncio.Lock()
        self._latest: Snapshot | None = None
        self._expires_mono = 0.0

    @property
    def latest(self) -> Snapshot | None:
        """The last snapshot, of any age; None before the first."""
        return self._latest

    async def get(self) -> Snapshot:
        """Return the current snapshot. A StoreError is in its `error`; it is not raised."""
        async with self._lock:
            if self._latest is None or self._clock() >= self._expires_mono:
                self._latest = await run_in_threadpool(self._take)
                self._expires_mono = self._clock() + MAX_AGE_S
            return self._latest

    def _take(self) -> Snapshot:
        overview: Overview | None = None
        error_text = ""
        try:
            overview = self._read()
        except errors.StoreError as error:
            error_text = str(error)

        stores = self._check_stores(overview, error_text)
        latest = self._latest
        newest = overview or (latest.overview if latest else None)
        fleet = latest.fleet if latest else FleetPicture()
        with suppress(errors.PollerError):  # `stores` says what is wrong
            fleet = self._read_fleet()
        view = overview_page.build_view(newest, stores, fleet)
        return Snapshot(newest, stores, view, fleet)
