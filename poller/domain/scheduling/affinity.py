"""Affinity: each worker has a queue of its own beside each shared one, for the targets it knows.

A target of a collector that keeps sessions belongs to the worker of its host, found by rendezvous
hashing: all devices of one address have the same worker, so one process enforces the session limit
of that address. Any other target belongs to the worker of its id, see home_table.py.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import NamedTuple

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing

#: Separates shared queue and worker in the name of a worker's own queue. No other part of a queue
#: name contains it, see naming.py.
MARK = "~"


def own_queue(queue: str, worker: str) -> str:
    """Return the queue that only this worker consumes, beside the shared one."""
    return f"{queue}{MARK}{worker}"


def shared_queue(queue: str) -> str:
    """Return the shared queue of a worker's own queue; a shared queue is returned unchanged."""
    return queue.partition(MARK)[0]


def queue_owner(queue: str) -> str:
    """Return the worker this queue belongs to, or "" for a shared queue."""
    return queue.partition(MARK)[2]


class Homes(NamedTuple):
    """The workers that the targets of a queue are divided among."""

    shares: tuple[tuple[str, int], ...]  # worker and its slots, sorted by name
    is_by_host: bool  # by the address of the device, or by the id of the target

    @property
    def workers(self) -> tuple[str, ...]:
        """The names of the workers."""
        return tuple(name for name, _ in self.shares)


def subscribed_queues(queues: Iterable[str], worker: str) -> set[str]:
    """Return the queues a worker consumes: the shared ones, and its own beside each."""
    subscribed = set(queues)
    subscribed.update([own_queue(queue, worker) for queue in subscribed])
    return subscribed


def own_queues(workers: Iterable[Worker]) -> set[str]:
    """Return the own queues of all these workers."""
    names: set[str] = set()
    for worker in workers:
        for queue in queue_routing.poll_queues(worker.queues):
            if _has_own(worker, queue):
                names.add(own_queue(queue, worker.name))
    return names


def able_slots(workers: Sequence[Worker]) -> dict[str, int]:
    """Return the slots of the workers that may get batches of their own, by own queue.

    A worker in trouble takes its part of the shared queues: targets that it cannot poll must not
    wait for it alone. While no worker of a queue has a database, all stay with what they know.
    """
    with_database: set[str] = set()
    for worker in workers:
        if not worker.store_error:
            with_database.update(worker.queues)

    slots = {}
    for worker in workers:
        if worker.rate_limit:
            continue
        for queue in queue_routing.poll_queues(worker.queues):
            can_read = not worker.store_error or queue not in with_database
            if can_read and _has_own(worker, queue):
                slots[own_queue(queue, worker.name)] = worker.slots
    return slots


def preferred_worker(host: str, workers: Sequence[str]) -> str:
    """Return the worker with the highest hash for this host; the same in every process."""
    return max(workers, key=lambda worker: (_hash(host, worker), worker))


def homes(workers: Iterable[Worker]) -> dict[str, Homes]:
    """Return the homes of each queue that has more than one worker.

    A queue is divided by host if one of its workers keeps sessions for it.
    """
    consumers: Counter[str] = Counter()
    by_queue: dict[str, list[Worker]] = {}
    for worker in workers:
        queues = queue_routing.poll_queues(worker.queues)
        consumers.update(queues)
        for queue in queues:
            if _has_own(worker, queue):
                by_queue.setdefault(queue, []).append(worker)

    shared = {}
    for queue, owners in by_queue.items():
        if consumers[queue] > 1:
            shared[queue] = _homes(queue, owners)
    return shared


def _homes(queue: str, owners: Sequence[Worker]) -> Homes:
    holders = [worker for worker in owners if _collector(queue) in worker.sessions]
    slots = {worker.name: worker.slots for worker in holders or owners}
    return Homes(tuple(sorted(slots.items())), is_by_host=bool(holders))


def _has_own(worker: Worker, queue: str) -> bool:
    """Whether the worker consumes a queue of its own beside this one.

    Workers of earlier releases do so only for collectors that keep sessions.
    """
    return worker.own_queues or _collector(queue) in worker.sessions


# Cached: every tick needs the collector of each queue of each worker.
@lru_cache(maxsize=4096)
def _collector(queue: str) -> str:
    return queue_routing.parse(queue)[0]


def _hash(host: str, worker: str) -> bytes:
    return hashlib.blake2b(f"{host} {worker}".encode(), digest_size=8).digest()
