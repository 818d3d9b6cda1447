"""Incidents of collectors in this process: a crashed child, too many stuck threads.

The loop and its threads record them; `isolation` reads them in a thread of its own.
"""

from __future__ import annotations

import queue
import threading
import time
from dataclasses import dataclass

from poller.domain.failures.quarantine import Cause, Incident


@dataclass(frozen=True, slots=True)
class CollectorIncident:
    collector: str
    incident: Incident


class CollectorIncidents:
    """A queue of incidents, safe for threads.

    `changed` is set when there is a reason to read it.
    """

    def __init__(self) -> None:
        self.changed = threading.Event()
        self._queue: queue.SimpleQueue[CollectorIncident] = queue.SimpleQueue()

    def __bool__(self) -> bool:
        """Whether an incident waits."""
        return not self._queue.empty()

    def record(self, collector: str, cause: Cause, text: str) -> None:
        """Queue an incident of now, and set `changed`."""
        now_ms = time.time_ns() // 1_000_000
        incident = Incident(now_ms, cause, text)
        self.put(CollectorIncident(collector, incident))
        self.changed.set()

    def put(self, incident: CollectorIncident) -> None:
        """Queue an incident again, for a later attempt, without setting `changed`."""
        self._queue.put(incident)

    def take(self) -> CollectorIncident | None:
        """Return the oldest incident, or None when the queue is empty."""
        try:
            return self._queue.get_nowait()
        except queue.Empty:
            return None
