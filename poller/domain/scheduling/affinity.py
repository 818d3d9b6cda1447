"""Which worker keeps the sessions of a host? Each host has a home among the workers of its queue, by hash alone.

Nothing is remembered: when a worker goes, only its hosts move; when one comes, only its share moves to it. All
devices of one address have one home, so that one worker minds what that address bears.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from functools import lru_cache

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing

#: Between a queue and the worker that alone takes from it. In no queue's name, see naming.py.
MARK = "~"


def own(queue: str, worker: str) -> str:
    """The queue that only this worker takes from, beside the one for all."""
    return f"{queue}{MARK}{worker}"


def shared(queue: str) -> str:
    """The queue for all that belongs to somebody's own; any other is its own answer."""
    return queue.partition(MARK)[0]


def owner(queue: str) -> str:
    """Whose own queue that is; nobody's: empty."""
    return queue.partition(MARK)[2]


def taken(queues: Iterable[str], sessions: Collection[str], worker: str) -> set[str]:
    """All that a worker takes from which serves these queues, and has collectors that keep sessions."""
    served = set(queues)
    return served | {own(queue, worker) for queue in served if _collector(queue) in sessions}


def own_queues(workers: Iterable[Worker]) -> set[str]:
    """All queues of single workers that these take from."""
    return {name for w in workers for name in taken(w.queues, w.sessions, w.name) if owner(name)}


def home(host: str, workers: Sequence[str]) -> str:
    """The worker that draws the highest lot for this host (rendezvous hashing); the same in every process."""
    return max(workers, key=lambda worker: (_lot(host, worker), worker))


@lru_cache(maxsize=4096)
def _collector(queue: str) -> str:
    """Asked for every worker and queue in every tick."""
    return queue_routing.parse(queue)[0]


def _lot(host: str, worker: str) -> bytes:
    return hashlib.blake2b(f"{host} {worker}".encode(), digest_size=8).digest()


def keepers(workers: Iterable[Worker]) -> dict[str, tuple[str, ...]]:
    """By queue, the workers that keep its sessions, if it has sessions to keep and more than one worker."""
    serving: Counter[str] = Counter()
    keeping: dict[str, set[str]] = {}
    for worker in workers:
        serving.update(worker.queues)
        for queue in worker.queues:
            if _collector(queue) in worker.sessions:
                keeping.setdefault(queue, set()).add(worker.name)
    return {queue: tuple(sorted(names)) for queue, names in keeping.items() if serving[queue] > 1}
