"""When could somebody else see a reading? The ledger says when it was collected, not when it was stored: so look."""

from __future__ import annotations

import threading
from types import TracebackType

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import cluster
from poller.db import engine as sql
from poller.db.tables import readings

#: How often it looks, and so how exact it is; and how old a reading may be when it is seen for the first time.
EVERY_S, OLDEST_MS = 0.1, 10_000


class Seen:
    """Looks while it is entered. `at_ms` has when a target's reading of an instant was first there."""

    def __init__(self, engine: Engine) -> None:
        self.at_ms: dict[tuple[int, int], int] = {}
        self._engine = engine
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Seen:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        at: TracebackType | None,
    ) -> None:
        self._stopped.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stopped.wait(EVERY_S):
            now_ms = cluster.now_ms()
            query = sa.select(readings.c.target_id, readings.c.at_ms).where(
                readings.c.at_ms > now_ms - OLDEST_MS
            )
            with sql.single_read(self._engine) as conn:
                for target, at_ms in conn.execute(query):
                    self.at_ms.setdefault((target, at_ms), now_ms)
