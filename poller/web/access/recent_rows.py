"""Rows that were read a moment ago, so that a request needs no database.

While the database is away, older rows are good for some minutes: nobody could have changed them.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Generic, TypeVar

from starlette.concurrency import run_in_threadpool

from poller import errors

Row = TypeVar("Row")

#: A removed token or session is accepted for this long at most.
FRESH_S = 3.0
#: The same while the database is away.
STALE_S = 900.0
MOST_ROWS = 10_000


class RecentRows(Generic[Row]):
    """The rows of some keys, read again when they are no longer fresh."""

    def __init__(
        self, load: Callable[[str], Row], clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._load = load
        self._clock = clock
        self._rows: dict[str, tuple[float, Row]] = {}

    def kept(self, key: str) -> Row | None:
        """Return a row that is fresh; None if it has to be read."""
        read_mono, row = self._rows.get(key, (0.0, None))
        return row if self._clock() < read_mono + FRESH_S else None

    async def get(self, key: str) -> Row:
        """Return a row. Raises StoreError if it cannot be read and was not read lately."""
        read_mono, row = self._rows.get(key, (0.0, None))
        now_mono = self._clock()
        if row is not None and now_mono < read_mono + FRESH_S:
            return row
        try:
            found = await run_in_threadpool(self._load, key)
        except errors.StoreError:
            if row is not None and now_mono < read_mono + STALE_S:
                return row
            raise
        self._keep(key, found)
        return found

    def _keep(self, key: str, row: Row) -> None:
        if row is None:
            self._rows.pop(key, None)
            return
        if key not in self._rows and len(self._rows) >= MOST_ROWS:
            self._rows.pop(next(iter(self._rows)), None)
        self._rows[key] = (self._clock(), row)

    def clear(self) -> None:
        """Forget all rows: this process changed some."""
        self._rows.clear()
