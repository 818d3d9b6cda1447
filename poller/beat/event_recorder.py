"""What the scheduler noticed goes to the stream, and the leader copies the stream to SQL. In a thread of its own: a
tick waits for neither. What cannot be stored now is stored later; a database that is away costs no event.
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Sequence

from poller import errors, event_publisher
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.record import event_rows as table
from poller.domain.record.event_kinds import Event
from poller.observability import logs
from poller.state.cluster import event_stream as stream

log = logs.get(__name__)

PAGE = 1_000
#: How long one look at the stream waits for something new; less than the client's patience.
WAIT_MS = 500
TRY_AGAIN_S = 2.0
#: Events of our own that wait for Redis; a beat makes a handful an hour.
MOST_WAITING = 1_000


class Recorder:
    def __init__(self, services: Services, stopping: threading.Event) -> None:
        self._services = services
        self._stopping = stopping
        self._leader: Leader | None = None
        self._noted: deque[Event] = deque(maxlen=MOST_WAITING)
        self._thread = threading.Thread(target=self._keep, name="recording", daemon=True)

    def start(self, leader: Leader) -> None:
        self._leader = leader
        self._thread.start()

    def note(self, event: Event) -> None:
        """Something happened: it is in the log at once, and elsewhere soon."""
        event_publisher.write_lines([event])
        self._noted.append(event)

    def finish(self) -> None:
        """The last words of a beat that stops; best effort."""
        self._stopping.set()
        if self._thread.is_alive():
            self._thread.join(timeout=3)
        try:
            self._publish()
        except errors.PollerError as error:
            log.warning("events_not_published", count=len(self._noted), error=str(error))

    def _keep(self) -> None:
        while not self._stopping.is_set():
            try:
                self._publish()
                self._record()
            except errors.PollerError as error:
                log.warning("recording_failed", error=str(error))
                self._stopping.wait(TRY_AGAIN_S)
            except Exception:
                log.exception("recording_broke")
                self._stopping.wait(TRY_AGAIN_S)

    def _publish(self) -> None:
        waiting = list(self._noted)
        event_publisher.publish(self._services, waiting)
        for _ in waiting:
            self._noted.popleft()

    def _record(self) -> None:
        if self._leader is None or not self._leader.leads:
            self._stopping.wait(WAIT_MS / 1000)
            return
        copy(self._services, WAIT_MS)


def copy(services: Services, wait_ms: int = 0) -> int:
    """Bring what is new in the stream to SQL. Two who do it at once do no harm. Returns how many entries were seen."""
    client, keys = services.redis, services.keys
    last = stream.recorded(client, keys)
    found = stream.after(client, keys, last, PAGE, wait_ms)
    if not found:
        return 0
    if len(found) == PAGE:
        _report_lost(services, last)
    known = [(entry.id, entry.event) for entry in found if entry.event]
    try:
        table.record(services.engine, known)
    except errors.StoreUnavailable:
        raise
    except errors.StoreError as error:
        log.warning("events_recorded_one_by_one", error=str(error))
        _record_each(services, known)
    stream.store_recorded(client, keys, found[-1].id)
    return len(found)


def _record_each(services: Services, known: Sequence[tuple[str, Event]]) -> None:
    """One that the database refuses must not hold up all later ones."""
    for entry_id, event in known:
        try:
            table.record(services.engine, [(entry_id, event)])
        except errors.StoreUnavailable:
            raise
        except errors.StoreError as error:
            log.error("event_refused", entry=entry_id, kind=event.kind.value, error=str(error))


def _report_lost(services: Services, last: str) -> None:
    """We are far behind: did the stream drop entries that were never copied?"""
    oldest = stream.oldest(services.redis, services.keys)
    if last != stream.BEGINNING and stream.is_before(last, oldest):
        log.error("events_not_recorded", after=last, until=oldest, fix="raise POLLER_EVENTS_LENGTH")
