"""Snapshots of the board: at most one read per second, shared by all viewers of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field

from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.presentation.health import Health, Stores
from poller.service.fleet import fleet_picture
from poller.service.fleet.age_picture import AgePicture
from poller.service.fleet.fleet_picture import FleetPicture
from poller.web.pages.fleet import overview_page
from poller.web.pages.fleet.overview_page import OverviewView

MAX_AGE_S = 1.0


def _no_times(now_ms: int) -> Mapping[str, QueueTimes]:
    return {}


@dataclass(frozen=True, slots=True)
class FleetReads:
    """Blocking reads of what the page has beside the overview. Each raises a PollerError."""

    fleet: Callable[[], FleetPicture] = FleetPicture
    ages: Callable[[], AgePicture] = AgePicture
    times: Callable[[int], Mapping[str, QueueTimes]] = _no_times  # at an instant in ms


@dataclass(frozen=True, slots=True)
class FleetNumbers:
    """The facts beside the overview, each as it could be read last."""

    fleet: FleetPicture = field(default_factory=FleetPicture)
    ages: AgePicture = field(default_factory=AgePicture)
    times: Mapping[str, QueueTimes] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest overview that could be read, the state of the stores, and the verdict on both."""

    overview: Overview | None
    stores: Stores
    view: OverviewView
    numbers: FleetNumbers = field(default_factory=FleetNumbers)

    @property
    def fleet(self) -> FleetPicture:
        return self.numbers.fleet

    @property
    def error(self) -> str:
        """Why there is no newer overview; "" when the last read succeeded."""
        return self.stores.redis_error

    @property
    def health(self) -> Health:
        return self.view.health


_NOTHING_ELSE = FleetReads()


class Snapshots:
    """The latest snapshot, for one event loop. One viewer renews an old one, the others wait."""

    def __init__(
        self,
        read: Callable[[], Overview],
        check_stores: Callable[[Overview | None, str], Stores],
        clock: Callable[[], float] = time.monotonic,
        reads: FleetReads = _NOTHING_ELSE,
    ) -> None:
        self._read = read
        self._check_stores = check_stores
        self._reads = reads
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
        numbers = latest.numbers if latest else FleetNumbers()
        if overview is not None:
            numbers = self._numbers(overview, numbers)
        return taken(newest, stores, numbers)

    def _numbers(self, overview: Overview, known: FleetNumbers) -> FleetNumbers:
        """Read each number. One that cannot be read stays as it was; `stores` says why."""
        fleet, ages, times = known.fleet, known.ages, known.times
        with suppress(errors.PollerError):
            fleet = self._reads.fleet()
        with suppress(errors.PollerError):
            ages = self._reads.ages()
        with suppress(errors.PollerError):
            times = self._reads.times(overview.as_of_ms)
        return FleetNumbers(fleet, ages, times)


def taken(overview: Overview | None, stores: Stores, numbers: FleetNumbers) -> Snapshot:
    """Return a snapshot of these values; none of its parts denies another."""
    fleet = numbers.fleet
    if overview is not None:
        fleet = fleet_picture.agreeing(fleet, overview)
    view = overview_page.build_view(overview, stores, fleet, numbers.ages, numbers.times)
    return Snapshot(overview, stores, view, FleetNumbers(fleet, numbers.ages, numbers.times))
