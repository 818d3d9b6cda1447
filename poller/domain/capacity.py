"""Can the workers keep up, and if not, how many more are needed?"""

from __future__ import annotations

from collections.abc import Iterable

from poller.domain.overview import Worker

#: Batches that may wait for each one a worker can poll at a time: enough to keep it busy between two ticks,
#: few enough that none of them grows old.
WAITING_PER_SLOT = 2
#: Up to so many seconds of its work may be overdue before a queue counts as short of workers.
BACKLOG_S = 5.0
#: Work that is done so much faster than it falls due is a backlog that shrinks.
CATCHING_UP = 1.02


def rooms(workers: Iterable[Worker], most: int) -> dict[str, int]:
    """How many batches may wait in each queue that somebody serves."""
    slots: dict[str, int] = {}
    for worker in workers:
        for queue in worker.queues:
            slots[queue] = slots.get(queue, 0) + worker.slots
    return {queue: min(most, max(1, WAITING_PER_SLOT * number)) for queue, number in sorted(slots.items())}


def shortage(needed_per_s: float, done_per_s: float, overdue: int) -> float | None:
    """How many times today's workers would do; 0 when they keep up, None when nothing is done at all."""
    if overdue <= max(1.0, needed_per_s * BACKLOG_S):
        return 0.0
    if done_per_s <= 0:
        return None
    ratio = needed_per_s / done_per_s
    return ratio if ratio > CATCHING_UP else 0.0
