"""The built-in sink: readings into the platform's own database, one transaction per call."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from poller.db.record import stored_readings
from poller.sinks.api import API_VERSION, Sample, Stores


class SqlSink:
    name: ClassVar[str] = "sql"
    api_version: ClassVar[int] = API_VERSION

    def __init__(self, stores: Stores) -> None:
        self._writer = stored_readings.Writer(stores.engine)

    def write(self, samples: Sequence[Sample]) -> None:
        """Repeating it changes nothing. Raises StoreError."""
        batch = [stored_readings.Stored(s.target.id, s.at_ms, s.readings) for s in samples]
        self._writer.write(batch, time.time_ns() // 1_000_000)

    def close(self) -> None:
        """The engine belongs to the platform."""
