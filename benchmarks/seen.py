"""The instants at which readings became visible in the database.

The ledger records when a reading was collected, not when it was stored.
"""

from __future__ import annotations

import threading
from types import TracebackType

import sqlalchemy as sa
from sqlalchemy.engine import Engine

from benchmarks import cluster
from poller.db import engine as sql
from poller.db.tables import readings

#: The interval of the queries, which limits the precision, and the maximum age of a new reading.
EVERY_S, OLDEST_MS = 0.1, 10_000


class Seen:
    """Queries in a thread while entered.

    `at_ms` maps a target and the instant of its reading to the instant of its first visibility.
    """

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
