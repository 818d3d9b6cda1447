"""Notices workers that joined, left or were lost, and makes the events.

The list of present workers is in Redis, so that a new leader continues with the list of the last.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

from poller.bootstrap import Services
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.record.overview import Worker
from poller.state.cluster import event_stream, worker_registry


class WorkerWatch:
    """The leader's comparison of living workers with those of its last check."""

    def __init__(self, services: Services) -> None:
        self._redis = services.redis
        self._keys = services.keys
        self._present: dict[str, int] | None = None  # worker key -> start; None: not read yet

    def forget(self) -> None:
        """Start a new term: another leader may have changed the list in Redis."""
        self._present = None

    def check(self, workers: Sequence[Worker], now_ms: int) -> list[Event]:
        """The events since the last check; `workers` are all registered ones.

        Raises StoreUnavailable; the next check then returns the events.
        """
        before = self._present
        if before is None:
            before = worker_registry.attending(self._redis, self._keys)
        present = {}
        for worker in workers:
            if worker_registry.is_alive(worker, now_ms):
                present[worker.key] = worker.started_ms

        events: list[Event] = []
        if present != before:
            events = [
                event for event in changes(before, workers, now_ms) if not self._is_said(event)
            ]
            joined = {key: start for key, start in present.items() if before.get(key) != start}
            gone = [key for key in before if key not in present]
            worker_registry.store_attending(self._redis, self._keys, joined, gone)
        self._present = present
        return events

    def _is_said(self, event: Event) -> bool:
        """Whether a worker of the same host has reported the loss, with its cause."""
        if event.kind is not Kind.WORKER_LOST:
            return False
        return event_stream.is_lost(self._redis, self._keys, event.data["worker"])


def changes(before: Mapping[str, int], workers: Sequence[Worker], now_ms: int) -> Iterator[Event]:
    """Events of workers that are gone, then of workers that joined.

    `before` maps the key of each worker present before to its start; another start is another
    process. `workers` are all registered workers, dead ones too.
    """
    registered = {worker.key: worker for worker in workers}
    alive = [worker for worker in workers if worker_registry.is_alive(worker, now_ms)]
    joined = [worker for worker in alive if before.get(worker.key) != worker.started_ms]
    yield from _gone(before.keys() - {worker.key for worker in alive}, registered, joined, now_ms)

    names_before = {_name(key) for key in before}
    name_counts = Counter(worker.name for worker in alive)
    for worker in sorted(joined, key=_key):
        count = name_counts[worker.name]
        if count > 1:
            message = f"joined; {count} workers have this name, give each its own with -n"
        elif worker.name in names_before:
            message = "restarted"
        else:
            message = "joined"
        yield _event(now_ms, Kind.WORKER_JOINED, worker.name, message)


def _gone(
    keys: set[str], registered: Mapping[str, Worker], joined: Sequence[Worker], now_ms: int
) -> Iterator[Event]:
    """A lost worker is still registered; one that left is not. A restarted one is neither."""
    joined_names = {worker.name for worker in joined}
    for key in sorted(keys):
        name = _name(key)
        if key in registered:
            silent_s = round(abs(now_ms - registered[key].seen_ms) / 1000)
            yield _event(now_ms, Kind.WORKER_LOST, name, f"sent no heartbeat for {silent_s} s")
        elif name not in joined_names:
            yield _event(now_ms, Kind.WORKER_LEFT, name, "stopped and left")


def _key(worker: Worker) -> str:
    return worker.key


def _name(key: str) -> str:
    """The name in a worker's key; see domain/record/overview.py."""
    return key.rpartition("#")[0] or key


def _event(now_ms: int, kind: Kind, name: str, message: str) -> Event:
    return Event(
        at_ms=now_ms,
        kind=kind,
        message=f"{name} {message}",
        data={"worker": name},
    )
