"""Why does nobody poll the targets of a domain? Said of its queue and the workers that live. It is never queued."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from poller.domain.record.overview import Worker
from poller.domain.scheduling import queue_routing


def reason(queue: str, living: Sequence[Worker]) -> str:
    """What is missing, in words: `needs tag zone=dmz; 3 workers live, none has it`. Empty if a worker takes it."""
    if any(queue in worker.queues for worker in living):
        return ""
    if not queue_routing.is_ours(queue):
        return "its name is none of ours"
    wanted = wants(queue, living)
    if not living:
        return f"needs {' and '.join(wanted)}; no worker is live"
    lacking = {worker.name: needs(queue, worker.collectors, worker.tags) for worker in living}
    nearest = min(lacking, key=lambda name: len(lacking[name]))
    if not lacking[nearest]:
        return f"{nearest} fits, and has not taken it up yet"
    return (
        f"needs {' and '.join(wanted)}; {_verdict(len(living), wanted, nearest, lacking[nearest])}"
    )


def wants(queue: str, living: Sequence[Worker]) -> list[str]:
    """What is missing somewhere: what every worker has is left out, unless that leaves nothing."""
    lacked = {need for worker in living for need in needs(queue, worker.collectors, worker.tags)}
    return [need for need in needs(queue) if need in lacked] or needs(queue)


def needs(
    queue: str, collectors: Collection[str] = (), tags: Mapping[str, str] | None = None
) -> list[str]:
    """What a worker needs to serve a queue, beyond what it has: `collector snmp`, `tag zone=dmz`."""
    collector, required = queue_routing.parse(queue)
    missing = [] if collector in collectors else [f"collector {collector}"]
    return missing + [
        f"tag {key}={value}" for key, value in required.items() if (tags or {}).get(key) != value
    ]


def _verdict(workers: int, wanted: Sequence[str], nearest: str, lacks: Sequence[str]) -> str:
    them = "it" if len(wanted) == 1 else "them"
    if workers == 1:
        return f"1 worker live, without {them}"
    if len(lacks) < len(wanted):
        return f"{workers:,} workers live, the nearest, {nearest}, lacks {' and '.join(lacks)}"
    return f"{workers:,} workers live, none has {them if len(wanted) == 1 else 'any of them'}"
