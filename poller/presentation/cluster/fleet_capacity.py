"""The capacity of all workers together: worker-seconds that they used, and that they have."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from poller.domain.metrics.queue_times import QueueTimes
from poller.domain.record.overview import Overview
from poller.presentation import running_workers
from poller.presentation.cluster.workers_json import MINUTE_S


@dataclass(frozen=True, slots=True)
class FleetCapacity:
    """Worker-seconds of the last minute. A worker of several domains is counted once."""

    used_seconds: float
    maximum_seconds: float


def of_fleet(overview: Overview, times: Mapping[str, QueueTimes]) -> FleetCapacity:
    """Return the capacity of the running workers."""
    used_ms = sum(of_queue.slot_ms for of_queue in times.values())
    slots = sum(worker.slots for worker in running_workers.running(overview))
    return FleetCapacity(used_ms / 1000, slots * MINUTE_S)
