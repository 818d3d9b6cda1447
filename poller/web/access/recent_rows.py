"""Rows that were read a moment ago, so that a request needs no database.

While the database is away, older rows are good for some minutes: nobody could have changed them. A
database that is silent counts as away, and no request waits for it in a thread of its own.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from poller import errors

Row = TypeVar("Row")

#: A removed token or session is accepted for this long at most.
FRESH_S = 3.0
#: A row in use is read again after this long, beside the requests that use it.
RENEW_S = 2.0
#: The same as FRESH_S while the database is away.
STALE_S = 900.0
#: A request waits this long for a row, and this long if it has an older one.
PATIENCE_S = 5.0
PATIENCE_WITH_ROW_S = 2.0
MOST_ROWS = 10_000


class RecentRows(Generic[Row]):
    """The rows of some keys, read again when they are no longer fresh. Used on one event loop."""

    def __init__(
        self, load: Callable[[str], Row], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._clock = clock
        self._rows: dict[str, tuple[float, Row]] = {}
        self._reads: dict[str, asyncio.Task[Row]] = {}  # under way, one for each key

    def kept(self, key: str) -> Row | None:
        """Return a row that is fresh; None if it has to be read. A row in use stays fresh."""
        read_mono, row = self._rows.get(key, (0.0, None))
        age_s = self._clock() - read_mono
        if row is None or age_s >= FRESH_S:
            return None
        if age_s >= RENEW_S:
            self._read(key)
        return row

    async def get(self, key: str) -> Row:
        """Return a row. Raises StoreError if it cannot be read and was not read lately."""
        read_mono, row = self._rows.get(key, (0.0, None))
        now_mono = self._clock()
        if row is not None and now_mono < read_mono + FRESH_S:
            return row
        is_usable = row is not None and now_mono < read_mono + STALE_S
        try:
            async with asyncio.timeout(PATIENCE_WITH_ROW_S if is_usable else PATIENCE_S):
                return await asyncio.shield(self._read(key))
        except (errors.StoreError, TimeoutError) as error:
            if row is not None and is_usable:
                return row
            if isinstance(error, TimeoutError):
                raise errors.StoreUnavailable("the database does not answer") from None
            raise

    def clear(self) -> None:
        """Forget all rows: this process changed some. Reads under way may have the old ones."""
        self._rows.clear()
        self._reads.clear()

    def _read(self, key: str) -> asyncio.Task[Row]:
        """Return the read of a row, which all requests for it share."""
        reading = self._reads.get(key)
        if reading is None:
            reading = asyncio.get_running_loop().create_task(run_in_threadpool(self._load, key))
            self._reads[key] = reading
            reading.add_done_callback(lambda done: self._end(key, done))
        return reading

    def _end(self, key: str, done: asyncio.Task[Row]) -> None:
        is_current = self._reads.get(key) is done
        if is_current:
            del self._reads[key]
        has_failed = done.cancelled() or done.exception() is not None  # told to those who wait
        if is_current and not has_failed:
            self._keep(key, done.result())

    def _keep(self, key: str, row: Row) -> None:
        if row is None:
            self._rows.pop(key, None)
            return
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            self._rows.pop(next(iter(self._rows)), None)
        self._rows[key] = (self._clock(), row)
