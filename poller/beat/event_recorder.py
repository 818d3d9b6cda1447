"""Records events in a thread of its own: this beat's to the stream, the stream's to SQL.

A tick waits for neither. An event that cannot be stored now is stored later. Only the leader copies
the stream to SQL.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from poller import errors, event_publisher
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.record import event_rows
from poller.domain.record.event_kinds import Event
from poller.observability import logs
from poller.state.cluster import event_stream

log = logs.get(__name__)

#: Entries copied to SQL at a time.
PAGE = 1_000
#: How long one read of the stream waits for new entries; less than the client's time-out.
WAIT_MS = 300
RETRY_S = 2.0
#: Events of this beat that may wait for Redis. A beat makes a handful an hour.
MAX_WAITING = 1_000


class EventRecorder:
    """The EventLog of a beat process."""

    def __init__(self, services: Services, stopping: threading.Event) -> None:
        self._services = services
        self._stopping = stopping
        self._leader: Leader | None = None
        self._waiting: deque[Event] = deque(maxlen=MAX_WAITING)
        self._thread = threading.Thread(target=self._run, name="event-recorder", daemon=True)

    def start(self, leader: Leader) -> None:
        """Start the thread; it copies the stream to SQL while `leader` leads."""
        self._leader = leader
        self._thread.start()

    def record(self, event: Event) -> None:
        """Log the event at once; the thread publishes it."""
        event_publisher.write_lines([event])
        self._waiting.append(event)

    def close(self) -> None:
        """Stop the thread and publish the events that still wait, if Redis is up."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=3)
        try:
            self._publish()
        except errors.PollerError as error:
            log.warning("events_not_published", count=len(self._waiting), error=str(error))

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._publish()
                self._copy()
            except errors.PollerError as error:
                log.warning("recording_failed", error=str(error))
                self._stopping.wait(RETRY_S)
            except Exception:  # door: the end of this thread; it must not die
                log.exception("recording_broke")
                self._stopping.wait(RETRY_S)

    def _publish(self) -> None:
        events = list(self._waiting)
        event_publisher.publish(self._services, events)
        for _ in events:
            self._waiting.popleft()

    def _copy(self) -> None:
        if self._leader is None or not self._leader.leads:
            self._stopping.wait(WAIT_MS / 1000)
            return
        copy(self._services, WAIT_MS)


def copy(services: Services, wait_ms: int = 0) -> int:
    """Copy new entries of the stream to SQL. Returns how many were read. Idempotent."""
    last_id = event_stream.recorded(services.redis, services.keys)
    entries = event_stream.after(services.redis, services.keys, last_id, PAGE, wait_ms)
    if not entries:
        return 0
    if len(entries) == PAGE:
        _log_dropped(services, last_id)

    rows = [(entry.id, entry.event) for entry in entries if entry.event]
    try:
        event_rows.record(services.engine, rows)
    except errors.StoreUnavailable:
        raise
    except errors.StoreError as error:
        log.warning("events_recorded_one_by_one", error=str(error))
        _record_each(services, rows)
    event_stream.store_recorded(services.redis, services.keys, entries[-1].id)
    return len(entries)


def _record_each(services: Services, rows: Sequence[tuple[str, Event]]) -> None:
    """Skip an event that the database refuses, so that it does not hold up later ones."""
    for entry_id, event in rows:
        try:
            event_rows.record(services.engine, [(entry_id, event)])
        except errors.StoreUnavailable:
            raise
        except errors.StoreError as error:
            log.error("event_refused", entry=entry_id, kind=event.kind.value, error=str(error))


def _log_dropped(services: Services, last_id: str) -> None:
    """Log an error if the bounded stream dropped entries before they were copied."""
    oldest_id = event_stream.oldest(services.redis, services.keys)
    if last_id == event_stream.BEGINNING:
        return
    if event_stream.is_before(last_id, oldest_id):
        log.error(
            "events_not_recorded",
            after=last_id,
            until=oldest_id,
            fix="raise POLLER_EVENTS_LENGTH",
        )
