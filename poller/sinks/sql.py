"""The `sql` sink: readings into the platform's own database, one transaction per call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from poller.db import answer_limit
from poller.db.record import stored_readings
from poller.db.record.stored_readings import Stored
from poller.sinks.api import API_VERSION, Sample, Stores

#: The target of a marked sample.
NO_TARGET = 0


class SqlSink:
    name: ClassVar[str] = "sql"
    api_version: ClassVar[int] = API_VERSION

    def __init__(self, stores: Stores) -> None:
        self._engine = stores.engine
        self._writer = stored_readings.Writer(stores.engine)

    def write(self, samples: Sequence[Sample]) -> None:
        """Store the readings. Repeating a call changes nothing. Raises StoreError."""
        batch = [Stored(sample.target.id, sample.at_ms, sample.readings) for sample in samples]
        now_ms = time.time_ns() // 1_000_000
        with answer_limit.answers_within(answer_limit.WRITE_ANSWER_S):
            self._writer.write(batch, now_ms)

    def check(self) -> str:
        """Remove the marked sample of a test, which belongs to no target."""
        stored_readings.remove_of_target(self._engine, NO_TARGET)
        return "the database took the sample, which was removed again"

    def close(self) -> None:
        """Close nothing: the engine belongs to the platform."""
