"""Which workers may take the batches of a target, and why the others may not."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from poller.domain.failures.quarantine import Trust
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity, home_table, unroutable
from poller.domain.why.phrases import span, without_dot
from poller.domain.why.target_facts import TargetFacts


class WorkerFit(NamedTuple):
    """One worker; `reason` says why it may not take the target, or what else matters."""

    worker: str
    fits: bool
    reason: str


def workers(facts: TargetFacts) -> list[WorkerFit]:
    """Every worker of the cluster, those that may take the target first."""
    fits = [_living(worker, facts) for worker in facts.cluster.living]
    fits += [_lost(worker, facts) for worker in facts.cluster.lost]
    return sorted(fits, key=lambda fit: (not fit.fits, fit.worker))


def home(facts: TargetFacts) -> tuple[str, bool]:
    """The worker that the target belongs to, and whether it keeps the sessions of the device.

    The name is empty if the target belongs to no worker.
    """
    homes = affinity.homes(facts.cluster.living).get(facts.queue_name)
    if homes is None:
        return "", False
    if not homes.is_by_host:
        return home_table.home_table(homes.shares).home(facts.target_id), False
    if facts.inventory is None:
        return "", False
    return affinity.preferred_worker(facts.inventory.address, homes.workers), True


def _lost(worker: Worker, facts: TargetFacts) -> WorkerFit:
    return WorkerFit(worker.name, False, f"lost {span(facts.now_ms - worker.seen_ms)} ago")


def _living(worker: Worker, facts: TargetFacts) -> WorkerFit:
    obstacles = list(_obstacles(worker, facts))
    if obstacles:
        return WorkerFit(worker.name, False, "; ".join(obstacles))
    return WorkerFit(worker.name, True, "; ".join(_remarks(worker, facts)))


def _obstacles(worker: Worker, facts: TargetFacts) -> Iterator[str]:
    queue = facts.queue_name
    collector = facts.inventory.collector if facts.inventory else ""
    if collector in worker.broken:
        yield f"collector {collector} cannot be loaded: {worker.broken[collector]}"
    lacks = unroutable.missing_needs(queue, worker.collectors, worker.tags)
    if lacks:
        yield f"lacks {' and '.join(lacks)}"
    elif worker.drain is not None:
        yield f"fits, and was drained by {worker.drain.by}"
    elif queue not in worker.queues:
        yield "fits, and has not taken the queue up yet"
    record = facts.cluster.crashes.get(worker.collectors.get(collector, ""))
    if record and record.trust is Trust.QUARANTINED:
        yield f"collector {collector} is quarantined"
    if worker.store_error:
        yield f"reports {without_dot(worker.store_error)}"


def _remarks(worker: Worker, facts: TargetFacts) -> Iterator[str]:
    name, keeps_sessions = home(facts)
    if worker.name == name:
        yield "keeps the sessions of the device" if keeps_sessions else "polls it unless busy"
    busy = max(0, worker.in_flight - worker.lent)
    if busy >= worker.slots:
        yield f"busy: {busy:,} of {worker.slots:,} worker slots"
    if worker.rate_limit:
        yield f"starts at most {worker.rate_limit} batches"
