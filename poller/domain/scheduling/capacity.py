"""How much is dispatched at a time, can the workers keep up, and if not, how many more are needed?"""

from __future__ import annotations

from collections.abc import Iterable

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing

#: Batches that may wait for each one a worker can poll at a time: enough to keep it busy between two ticks,
#: few enough that none of them grows old.
WAITING_PER_SLOT = 2
#: Up to so many seconds of its work may be overdue before a queue counts as short of workers.
BACKLOG_S = 5.0
#: Work that is done so much faster than it falls due is a backlog that shrinks.
CATCHING_UP = 1.02
#: A tick that finds so many full batches for each queue may as well be two: they hardly get emptier by it.
FULL_BATCHES = 3
SHORTEST_PAUSE_S = 0.05


def rooms(workers: Iterable[Worker], most: int) -> dict[str, int]:
    """How many batches may wait in each queue that somebody serves."""
    slots: dict[str, int] = {}
    for worker in workers:
        for queue in worker.queues:
            slots[queue] = slots.get(queue, 0) + worker.slots
    return {
        queue: min(most, max(1, WAITING_PER_SLOT * number))
        for queue, number in sorted(slots.items())
    }


def batch_sizes(workers: Iterable[Worker], batch_size: int) -> dict[str, int]:
    """How many targets a batch of a queue has, where polls cost more than ordinary ones; of several costs the highest.

    A batch is then about as much work as any other, and a worker polls fewer of these targets at a time.
    """
    costs: dict[str, float] = {}
    for worker in workers:
        for queue in worker.queues:
            cost = worker.costs.get(queue_routing.parse(queue)[0], 1.0)
            costs[queue] = max(cost, costs.get(queue, 1.0))
    return {queue: max(1, int(batch_size / cost)) for queue, cost in costs.items() if cost > 1}


def shortage(needed_per_s: float, done_per_s: float, overdue: int) -> float | None:
    """How many times today's workers would do; 0 when they keep up, None when nothing is done at all."""
    if overdue <= max(1.0, needed_per_s * BACKLOG_S):
        return 0.0
    if done_per_s <= 0:
        return None
    ratio = needed_per_s / done_per_s
    return ratio if ratio > CATCHING_UP else 0.0


def pause_s(longest_s: float, targets_per_s: float, queues: int, batch_size: int) -> float:
    """Until the next look at the board. A large fleet is looked at more often: the work comes in smaller lots, and
    nobody waits for the end of a long one."""
    worth_it = FULL_BATCHES * batch_size * queues
    return (
        longest_s
        if targets_per_s <= 0
        else min(longest_s, max(SHORTEST_PAUSE_S, worth_it / targets_per_s))
    )
