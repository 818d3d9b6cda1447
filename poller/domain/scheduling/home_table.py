"""Homes of targets: the one worker of a queue that polls a target and so comes to know it.

Ids fall into buckets, and rendezvous hashing gives each bucket to a worker. When a worker goes, its
buckets move, and few others; when a worker comes, it takes its share from all. A bound on the share
of each worker, weighted by slots, keeps the division even. Nothing is stored: every process that
knows the workers computes the same table.
"""

from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Iterable, Sequence
from functools import lru_cache

BUCKETS = 4096
#: Targets that are made together have consecutive ids. The targets of one device mostly fall into
#: one block: always if every device has 1, 2, 3, 4, 6 or 12 of them.
IDS_PER_BLOCK = 12
#: A worker may have this many buckets more than its share of the buckets so far, at most, and few
#: at the beginning: small fleets are divided evenly, and in large ones few buckets move.
MOST_EXCESS = 16.0
_EXCESS_PER_BUCKET = 1 / 16

_SCORE_BYTES = 4
_SCORES = 1 << 8 * _SCORE_BYTES


class HomeTable:
    """The home of every target id, for one set of workers."""

    def __init__(self, workers: tuple[str, ...], numbers: list[int]) -> None:
        self.workers = workers
        self._numbers = numbers  # by bucket: the position in `workers`

    def home(self, target_id: int) -> str:
        """The worker that the target belongs to."""
        return self.workers[self._numbers[bucket(target_id)]]

    def divide(self, ids: Iterable[int]) -> dict[str, list[int]]:
        """Targets by worker, in their order; workers without targets are missing.

        One of the few loops over every claimed target: about 0.1 us each.
        """
        numbers = self._numbers
        parts: list[list[int]] = [[] for _ in self.workers]
        for target_id in ids:
            parts[numbers[(target_id - 1) // IDS_PER_BLOCK % BUCKETS]].append(target_id)
        return {worker: part for worker, part in zip(self.workers, parts, strict=True) if part}


def bucket(target_id: int) -> int:
    """The bucket of a target id."""
    return (target_id - 1) // IDS_PER_BLOCK % BUCKETS


# Cached: most queues have the same workers, and workers change rarely.
@lru_cache(maxsize=64)
def home_table(shares: tuple[tuple[str, int], ...]) -> HomeTable:
    """The table for workers with their slots."""
    workers = tuple(worker for worker, _ in shares)
    slots = [max(1, count) for _, count in shares]
    scores = [_scores(worker, count) for worker, count in zip(workers, slots, strict=True)]
    return HomeTable(workers, _assign(scores, slots))


def _assign(scores: Sequence[Sequence[float]], slots: Sequence[int]) -> list[int]:
    """Give each bucket to the highest score among the workers that are below their limit.

    The limits add up to more than the loads, so there always is one.
    """
    total = sum(slots)
    shares = [count / total for count in slots]
    loads = [0] * len(slots)
    numbers = []
    for number, ranks in enumerate(zip(*scores, strict=True)):
        excess = min(number * _EXCESS_PER_BUCKET, MOST_EXCESS)
        chosen = ranks.index(max(ranks))
        if loads[chosen] >= (number + 1) * shares[chosen] + excess:
            below = [
                worker
                for worker, load in enumerate(loads)
                if load < (number + 1) * shares[worker] + excess
            ]
            chosen = max(below, key=ranks.__getitem__)
        loads[chosen] += 1
        numbers.append(chosen)
    return numbers


@lru_cache(maxsize=512)
def _scores(worker: str, slots: int) -> list[float]:
    """The score of a worker for each bucket: weighted rendezvous hashing, slots / -ln(u).

    One call of an extendable hash gives the uniform numbers u of all buckets.
    """
    digest = hashlib.shake_128(worker.encode()).digest(BUCKETS * _SCORE_BYTES)
    numbers = struct.unpack(f">{BUCKETS}I", digest)
    return [-slots / math.log((number + 0.5) / _SCORES) for number in numbers]
