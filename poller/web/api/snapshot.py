"""One look at the board per second at most, shared by all viewers of this process."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from poller import errors
from poller.domain.record.overview import Overview
from poller.web.pages import overview_page
from poller.web.pages.overview_page import View

MAX_AGE_S = 1.0


@dataclass(frozen=True, slots=True)
class Snapshot:
    """The newest overview that could be read, why there is no newer one, and both as a view."""

    overview: Overview | None
    trouble: str
    view: View


class Snapshots:
    """Lives in one event loop: whoever finds the snapshot too old takes a new one, the others wait for it."""

    def __init__(
        self, read: Callable[[], Overview], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._read = read
        self._clock = clock
        self._lock = asyncio.Lock()
        self._latest: Snapshot | None = None
        self._until = 0.0

    async def get(self) -> Snapshot:
        """The current snapshot; never raises for a store that does not answer."""
        async with self._lock:
            if self._latest is None or self._clock() >= self._until:
                self._latest = await run_in_threadpool(self._take)
                self._until = self._clock() + MAX_AGE_S
            return self._latest

    def _take(self) -> Snapshot:
        trouble = ""
        overview = self._latest.overview if self._latest else None
        try:
            overview = self._read()
        except errors.StoreError as error:
            trouble = str(error)
        return Snapshot(overview, trouble, overview_page.present(overview, trouble))
