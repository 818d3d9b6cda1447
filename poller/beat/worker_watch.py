"""Which workers came, went, or were lost? The leader compares who is here with whom it, or its predecessor, saw."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from poller.bootstrap import Services
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import Worker
from poller.event_publisher import Note
from poller.state.cluster import worker_registry


class Attendance:
    def __init__(self, services: Services, note: Note) -> None:
        self._redis, self._keys = services.redis, services.keys
        self._note = note
        self._present: dict[str, int] | None = None  # key -> start

    def forget(self) -> None:
        """We were not leading: somebody else kept the list."""
        self._present = None

    def look(self, now_ms: int) -> None:
        """Tell what changed since the last look. Raises StoreUnavailable, and then tells it next time."""
        before = self._present
        if before is None:
            before = worker_registry.attending(self._redis, self._keys)
        everybody = worker_registry.registered(self._redis, self._keys)
        here = {
            worker.key: worker.started_ms
            for worker in everybody
            if worker_registry.is_alive(worker, now_ms)
        }
        if here != before:
            came = {key: start for key, start in here.items() if before.get(key) != start}
            worker_registry.store_attending(
                self._redis, self._keys, came, [key for key in before if key not in here]
            )
            for event in changes(before, everybody, now_ms):
                self._note(event)
        self._present = here


def changes(before: Mapping[str, int], everybody: Sequence[Worker], now_ms: int) -> Iterator[Event]:
    """`before` has the start of each worker that was here, by key; one with another start is another one."""
    known = {worker.key: worker for worker in everybody}
    here = {
        key: worker for key, worker in known.items() if worker_registry.is_alive(worker, now_ms)
    }
    came = [worker for key, worker in here.items() if before.get(key) != worker.started_ms]
    for key in sorted(before.keys() - here):
        name = _name(key)
        if key in known:
            silent_s = round(abs(now_ms - known[key].seen_ms) / 1000)
            yield _event(
                now_ms, Kind.WORKER_LOST, f"{name} has said nothing for {silent_s} s", name
            )
        elif all(worker.name != name for worker in came):  # else it was killed, and started again
            yield _event(now_ms, Kind.WORKER_LEFT, f"{name} said good-bye", name)
    were, namesakes = set(map(_name, before)), Counter(worker.name for worker in here.values())
    for worker in sorted(came, key=lambda worker: worker.key):
        said = "is back with a new start" if worker.name in were else "polls from now on"
        if namesakes[worker.name] > 1:
            said = f"polls from now on; {namesakes[worker.name]} workers have this name, give each its own with -n"
        yield _event(now_ms, Kind.WORKER_JOINED, f"{worker.name} {said}", worker.name)


def _name(key: str) -> str:
    """Of a worker's key; see domain/record/overview.py."""
    return key.rpartition("#")[0] or key


def _event(now_ms: int, kind: Kind, message: str, name: str) -> Event:
    return Event(now_ms, kind, message, data={"worker": name})
