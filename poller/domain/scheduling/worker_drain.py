"""A drain: until its end a worker finishes what it has, and takes nothing new."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.domain.scheduling import queue_routing

if TYPE_CHECKING:
    from poller.domain.record.overview import Worker


@dataclass(frozen=True, slots=True)
class Drain:
    """A drain: the person, the reason and the end. Instants are those of the Redis server."""

    since_ms: int
    until_ms: int
    by: str
    reason: str = ""


@dataclass(frozen=True, slots=True)
class QueueCover:
    """A queue of the workers to be drained, and the other workers that serve it."""

    queue: str
    others: Sequence[str]

    @property
    def is_poll(self) -> bool:
        """Whether targets wait in it; else it is a queue of jobs."""
        return self.queue.startswith(queue_routing.QUEUE_PREFIX)


def cover(names: Collection[str], living: Iterable[Worker]) -> list[QueueCover]:
    """The queues of these workers, by name, each with the other workers that serve it.

    A drained worker serves no queue.
    """
    others: dict[str, list[str]] = {}
    served: set[str] = set()
    for worker in living:
        for queue in worker.queues:
            if worker.name in names:
                served.add(queue)
            else:
                others.setdefault(queue, []).append(worker.name)
    return [QueueCover(queue, sorted(others.get(queue, ()))) for queue in sorted(served)]


def is_drained(worker: Worker) -> bool:
    """Whether a worker has left its queues and finished what it had."""
    return worker.drain is not None and not worker.queues and not worker.unfinished
