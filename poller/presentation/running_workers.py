"""The workers of an overview: which of them run, and which queues none of them serves."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass

from poller.domain.record.overview import Overview, Worker
from poller.domain.scheduling import unroutable as missing
from poller.state.cluster import worker_registry


@dataclass(frozen=True, slots=True)
class Unroutable:
    """A queue that no running worker serves. Its targets are not queued."""

    queue: str
    targets: int
    needs: str  # collector and tags that no single running worker has
    reason: str


def running(overview: Overview) -> list[Worker]:
    """The workers that sent a heartbeat lately."""
    return [worker for worker in overview.workers if is_running(worker, overview)]


def is_running(worker: Worker, overview: Overview) -> bool:
    """Whether the worker sent a heartbeat lately. A listed worker that did not is lost."""
    return worker_registry.is_alive(worker, overview.as_of_ms)


def count(overview: Overview) -> int:
    """The number of running workers."""
    return len(running(overview))


def unroutable(overview: Overview) -> list[Unroutable]:
    """The queues that no running worker serves, the largest first."""
    workers = running(overview)
    largest_first = sorted(overview.unserved.items(), key=lambda item: (-item[1], item[0]))

    found = []
    for queue, targets in largest_first:
        needs = " and ".join(missing.listed_needs(queue, workers))
        reason = missing.reason(queue, workers)
        found.append(Unroutable(queue, targets, needs, reason))
    return found


def waiting_reason(queue: str, overview: Overview) -> str:
    """Why a target of this queue is long overdue."""
    if overview.leader is None:
        return "no leader: nothing is being scheduled"
    for each in unroutable(overview):
        if each.queue == queue:
            return each.reason
    return "the workers do not keep up"


def queue_needs(queue: str) -> str:
    """The needs of a queue: `collector snmp and tag zone=dmz`."""
    return " and ".join(missing.missing_needs(queue))


def duplicate_names(overview: Overview) -> dict[str, int]:
    """Names of several running workers, with their number. Celery's tools mix such workers up."""
    names = Counter(worker.name for worker in running(overview))
    return {name: number for name, number in names.items() if number > 1}
