"""How much work is dispatched at a time, and whether the workers keep up with a queue."""

from __future__ import annotations

import math
from collections.abc import Iterable

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing

#: Batches that may wait for each batch a worker can poll at a time. Two keep the worker busy
#: between ticks, and none of them waits for long.
WAITING_PER_SLOT = 2
#: Seconds of its work that may be overdue before a queue counts as short of workers.
BACKLOG_S = 5.0
#: A backlog shrinks when the ratio of needed to done polls is below this.
CATCHING_UP = 1.02
#: A tick with this many full batches for each queue may as well be two ticks with full batches.
FULL_BATCHES = 3
#: The part of a batch that the targets of one worker fill on average.
MOSTLY_FULL = 0.75
SHORTEST_PAUSE_S = 0.05


def batch_limits(workers: Iterable[Worker], max_queue: int) -> dict[str, int]:
    """Return how many batches may wait in each queue of polls that has a worker."""
    slots: dict[str, int] = {}
    for worker in workers:
        for queue in queue_routing.poll_queues(worker.queues):
            slots[queue] = slots.get(queue, 0) + worker.slots

    limits = {}
    for queue, count in sorted(slots.items()):
        waiting = max(1, WAITING_PER_SLOT * count)
        limits[queue] = min(max_queue, waiting)
    return limits


def batch_sizes(workers: Iterable[Worker], batch_size: int) -> dict[str, int]:
    """Return the targets per batch of each queue whose polls cost more than ordinary ones.

    A batch then is about as much work as any other. The highest cost that a worker states counts.
    """
    costs: dict[str, float] = {}
    for worker in workers:
        for queue in queue_routing.poll_queues(worker.queues):
            collector, _ = queue_routing.parse(queue)
            cost = worker.costs.get(collector, 1.0)
            costs[queue] = max(cost, costs.get(queue, 1.0))

    sizes = {}
    for queue, cost in costs.items():
        if cost > 1:
            size = int(batch_size / cost)
            sizes[queue] = max(1, size)
    return sizes


def shortage(needed_per_s: float, done_per_s: float, overdue: int) -> float | None:
    """Return by which factor the workers of a queue are too few.

    0 means that the workers keep up, None that nothing is polled at all.
    """
    backlog_limit = max(1.0, needed_per_s * BACKLOG_S)
    if overdue <= backlog_limit:
        return 0.0
    if done_per_s <= 0:
        return None
    ratio = needed_per_s / done_per_s
    if ratio <= CATCHING_UP:
        return 0.0
    return ratio


def targets_per_tick(workers: Iterable[int], batch_size: int) -> int:
    """Return how many targets of all queues fill the batches of one tick.

    `workers` holds, for each queue, the number of workers that its targets are divided among. The
    batches of several workers are filled for the most part only: chance makes some of them larger.
    """
    total = 0.0
    for count in workers:
        if count < 2:
            total += FULL_BATCHES * batch_size
        else:
            rounds = math.ceil(FULL_BATCHES / (MOSTLY_FULL * count))
            total += rounds * count * MOSTLY_FULL * batch_size
    return round(total)


def pause_s(longest_s: float, targets_per_s: float, wanted: int) -> float:
    """Return the pause until the next tick, in which the wanted number of targets falls due.

    A large fleet is ticked more often: work arrives in smaller portions, and no target waits for
    the end of a long tick.
    """
    if targets_per_s <= 0:
        return longest_s
    needed_s = max(SHORTEST_PAUSE_S, wanted / targets_per_s)
    return min(longest_s, needed_s)
