"""The load of each queue: its sizes on the board, the polls it needs and the polls it gets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from redis import Redis
from redis.client import Pipeline

from poller.domain.metrics import queue_times
from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import SOON_MS, Load, Worker
from poller.domain.scheduling import affinity, capacity
from poller.state.cluster import stats_slices, worker_queues, worker_registry
from poller.state.cluster.stats_slices import Slice, number
from poller.state.keys import ROUTINE_MARK, SLICE_MS, Keys
from poller.state.redis_client import store_errors

OVERDUE_MS = 1_000
#: Complete slices over which the time in slots is added up: one minute.
SLOT_SLICES = 6
#: Slices of the waits: as long as these slices are kept.
WAIT_SLICES = 30


class QueueSizes(NamedTuple):
    """Sizes of one queue, in the order of the commands of `add_to`."""

    due: int
    due_overdue: int
    due_soon: int
    urgent: int
    urgent_overdue: int
    urgent_soon: int
    urgent_batches: int
    routine_batches: int
    needs: str | None


def add_to(pipe: Pipeline, keys: Keys, queue: str, now_ms: int) -> None:
    """Add the commands that read the sizes of a queue."""
    for place in (keys.due(queue), keys.urgent(queue)):
        pipe.zcard(place)
        pipe.zcount(place, "-inf", now_ms - OVERDUE_MS)
        pipe.zcount(place, "-inf", now_ms + SOON_MS)

    pipe.llen(queue)
    pipe.llen(queue + ROUTINE_MARK)
    pipe.hget(keys.needs, queue)


def loads(
    client: Redis,
    queues: Mapping[str, QueueSizes],
    last_minute: Sequence[Slice],
    workers: Sequence[Worker],
    now_ms: int,
) -> list[Load]:
    """The loads of all queues. Raises StoreError."""
    serving: Counter[str] = Counter()
    for worker in workers:
        if worker_registry.is_alive(worker, now_ms):
            serving.update(worker.queues)

    polls = stats_slices.polls_by_queue(last_minute)
    seconds = max(1, len(last_minute)) * SLICE_MS / 1000
    own_batches = _batches_of_single_workers(client, workers)

    found = []
    for queue, sizes in queues.items():
        overdue = sizes.due_overdue + sizes.urgent_overdue
        batches = sizes.urgent_batches + sizes.routine_batches + own_batches[queue]
        needed_per_s = number(sizes.needs) / 1e6
        done_per_s = polls[queue] / seconds

        load = Load(
            queue=queue,
            due=sizes.due + sizes.urgent,
            overdue=overdue,
            waiting=batches,
            needed_per_s=needed_per_s,
            done_per_s=done_per_s,
            workers=serving[queue],
            shortage=capacity.shortage(needed_per_s, done_per_s, overdue),
            urgent=sizes.urgent,
            due_soon=sizes.due_soon + sizes.urgent_soon,
        )
        found.append(load)

    return found


def _batches_of_single_workers(client: Redis, workers: Sequence[Worker]) -> Counter[str]:
    """Batches that wait in the queues of single workers, by the shared queue they belong to."""
    batches: Counter[str] = Counter()
    queues = affinity.own_queues(workers)
    depths = worker_queues.depths(client, queues)
    for queue, depth in depths.items():
        shared_queue = affinity.shared_queue(queue)
        batches[shared_queue] += depth

    return batches


def times(client: Redis, keys: Keys, now_ms: int) -> Mapping[str, QueueTimes]:
    """Return the slot times of the last minute and the waits of five minutes, by queue.

    Raises StoreError.
    """
    newest = now_ms // SLICE_MS
    pipe = client.pipeline(transaction=False)
    for slice_number in range(newest - WAIT_SLICES, newest):
        pipe.hgetall(keys.times(slice_number))
    with store_errors(client):
        slices: Sequence[Slice] = pipe.execute()

    last_minute = queue_times.parse(_counters(slices[-SLOT_SLICES:]))
    found = queue_times.parse(_counters(slices))
    for queue, of_queue in found.items():
        of_queue.slot_ms = last_minute[queue].slot_ms if queue in last_minute else 0
    return found


def _counters(slices: Sequence[Slice]) -> Iterator[tuple[str, int]]:
    for fields in slices:
        for name, value in fields.items():
            yield name, number(value)
