"""Snapshots of the board: at most one read per second, shared by all viewers of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.pages import overview_page
from poller.web.pages.overview_page import OverviewView

MAX_AGE_S = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest overview that could be read, and its view."""

    overview: Overview | None
    error: str  # why there is no newer overview; "" when the last read succeeded
    view: OverviewView


class Snapshots:
    """The latest snapshot, for one event loop. One viewer renews an old one, the others wait."""

    def __init__(
        self, read: Callable[[], Overview], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._latest: Snapshot | None = None
        self._expires_mono = 0.0

    async def get(self) -> Snapshot:
        """Return the current snapshot. A StoreError is in its `error`; it is not raised."""
        async with self._lock:
            if self._latest is None or self._clock() >= self._expires_mono:
                self._latest = await run_in_threadpool(self._take)
                self._expires_mono = self._clock() + MAX_AGE_S
            return self._latest

    def _take(self) -> Snapshot:
        overview = self._latest.overview if self._latest else None
        error_text = ""
        try:
            overview = self._read()
        except errors.StoreError as error:
            error_text = str(error)

        view = overview_page.build_view(overview, error_text)
        return Snapshot(overview, error_text, view)
