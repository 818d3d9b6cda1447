"""Which workers came, went, or were lost? The leader compares who is here with whom it, or its predecessor, saw."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poller.bootstrap import Services
from poller.domain.events import Event, Kind
from poller.domain.overview import Worker
from poller.events import Note
from poller.state import workers


class Attendance:
    def __init__(self, services: Services, note: Note) -> None:
        self._redis, self._keys = services.redis, services.keys
        self._note = note
        self._present: dict[str, int] | None = None  # name -> start

    def forget(self) -> None:
        """We were not leading: somebody else kept the list."""
        self._present = None

    def look(self, now_ms: int) -> None:
        """Tell what changed since the last look. Raises StoreUnavailable, and then tells it next time."""
        before = self._present
        if before is None:
            before = workers.attending(self._redis, self._keys)
        everybody = workers.known(self._redis, self._keys)
        here = {worker.name: worker.started_ms for worker in everybody if workers.is_alive(worker, now_ms)}
        if here != before:
            came = {name: start for name, start in here.items() if before.get(name) != start}
            workers.note_attending(self._redis, self._keys, came, [name for name in before if name not in here])
            for event in changes(before, everybody, now_ms):
                self._note(event)
        self._present = here


def changes(before: Mapping[str, int], everybody: Sequence[Worker], now_ms: int) -> Iterator[Event]:
    """`before` has the start of each worker that was here; one with another start is another one."""
    known = {worker.name: worker for worker in everybody}
    here = {name for name, worker in known.items() if workers.is_alive(worker, now_ms)}
    for name in sorted(before.keys() - here):
        if name in known:
            silent_s = round(abs(now_ms - known[name].seen_ms) / 1000)
            yield _event(now_ms, Kind.WORKER_LOST, f"{name} has said nothing for {silent_s} s", name)
        else:
            yield _event(now_ms, Kind.WORKER_LEFT, f"{name} said good-bye", name)
    for name in sorted(here):
        if before.get(name) != known[name].started_ms:
            again = "is back with a new start" if name in before else "polls from now on"
            yield _event(now_ms, Kind.WORKER_JOINED, f"{name} {again}", name)


def _event(now_ms: int, kind: Kind, message: str, name: str) -> Event:
    return Event(now_ms, kind, message, data={"worker": name})
