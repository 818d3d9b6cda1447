"""Why no worker serves a queue, in words. An unserved domain is never queued."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing


def reason(queue: str, living: Sequence[Worker]) -> str:
    """Return what is missing: `needs tag zone=dmz; 3 workers live, none has it`.

    Empty when a worker serves the queue.
    """
    if any(queue in worker.queues for worker in living):
        return ""
    if not queue_routing.is_canonical(queue):
        return "its name is not the name of a domain"

    needs = listed_needs(queue, living)
    needed = f"needs {' and '.join(needs)}"
    if not living:
        return f"{needed}; no worker is live"

    missing_by_worker = {
        worker.name: missing_needs(queue, worker.collectors, worker.tags) for worker in living
    }
    nearest = min(missing_by_worker, key=lambda name: len(missing_by_worker[name]))
    lacks = missing_by_worker[nearest]
    if not lacks:
        fitting = [worker for worker in living if not missing_by_worker[worker.name]]
        return _untaken(fitting)
    return f"{needed}; {_comparison(len(living), needs, nearest, lacks)}"


def _untaken(fitting: Sequence[Worker]) -> str:
    """Why none of the workers that could serve a queue does."""
    for worker in fitting:
        if worker.drain is None:
            return f"{worker.name} fits, and has not taken it up yet"
    drained = fitting[0]
    by = drained.drain.by if drained.drain else ""
    others = f", and so are {len(fitting) - 1:,} more" if len(fitting) > 1 else ""
    return f"{drained.name} fits, but was drained by {by}{others}"


def missing_needs(
    queue: str, collectors: Collection[str] = (), tags: Mapping[str, str] | None = None
) -> list[str]:
    """Return what a worker lacks to serve a queue: `collector snmp`, `tag zone=dmz`."""
    collector, required = queue_routing.parse(queue)
    present = tags or {}

    lacks = []
    if collector not in collectors:
        lacks.append(f"collector {collector}")
    for key, value in required.items():
        if present.get(key) != value:
            lacks.append(f"tag {key}={value}")

    return lacks


def listed_needs(queue: str, living: Sequence[Worker]) -> list[str]:
    """Return the needs that at least one worker lacks, or all needs if there are none of these."""
    lacked: set[str] = set()
    for worker in living:
        lacked.update(missing_needs(queue, worker.collectors, worker.tags))
    needs = missing_needs(queue)
    return [need for need in needs if need in lacked] or needs


def _comparison(workers: int, needs: Sequence[str], nearest: str, lacks: Sequence[str]) -> str:
    is_one = len(needs) == 1
    if workers == 1:
        return f"1 worker live, without {'it' if is_one else 'them'}"
    if len(lacks) < len(needs):
        return f"{workers:,} workers live, the nearest, {nearest}, lacks {' and '.join(lacks)}"
    return f"{workers:,} workers live, none has {'it' if is_one else 'any of them'}"
