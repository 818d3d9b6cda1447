"""Session affinity: which worker of a queue holds the sessions of a host.

Rendezvous hashing decides, and nothing is stored. When a worker goes, only its hosts move; when a
worker comes, only its share moves there. All devices of one address have the same worker, so one
process enforces the session limit of that address.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

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


def subscribed_queues(
    queues: Iterable[str], session_collectors: Collection[str], worker: str
) -> set[str]:
    """Return the queues a worker consumes: the shared ones, and its own for session collectors."""
    subscribed = set(queues)
    for queue in list(subscribed):
        if _collector(queue) in session_collectors:
            subscribed.add(own_queue(queue, worker))
    return subscribed


def own_queues(workers: Iterable[Worker]) -> set[str]:
    """Return the own queues of all these workers."""
    names: set[str] = set()
    for worker in workers:
        queues = queue_routing.poll_queues(worker.queues)
        subscribed = subscribed_queues(queues, worker.sessions, worker.name)
        names.update(queue for queue in subscribed if queue_owner(queue))
    return names


def preferred_worker(host: str, workers: Sequence[str]) -> str:
    """Return the worker with the highest hash for this host; the same in every process."""
    return max(workers, key=lambda worker: (_hash(host, worker), worker))


def session_workers(workers: Iterable[Worker]) -> dict[str, tuple[str, ...]]:
    """Return the workers that hold sessions, by queue; only queues with more than one worker."""
    consumers: Counter[str] = Counter()
    holders: dict[str, set[str]] = {}
    for worker in workers:
        queues = queue_routing.poll_queues(worker.queues)
        consumers.update(queues)
        for queue in queues:
            if _collector(queue) in worker.sessions:
                holders.setdefault(queue, set()).add(worker.name)

    shared = {}
    for queue, names in holders.items():
        if consumers[queue] > 1:
            shared[queue] = tuple(sorted(names))
    return shared


# Cached: every tick needs the collector of each queue of each worker.
@lru_cache(maxsize=4096)
def _collector(queue: str) -> str:
    return queue_routing.parse(queue)[0]


def _hash(host: str, worker: str) -> bytes:
    return hashlib.blake2b(f"{host} {worker}".encode(), digest_size=8).digest()
