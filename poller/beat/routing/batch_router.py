"""The queue of each batch: that of the worker which knows its targets, or the shared one.

Each worker has a queue of its own beside the shared ones; see domain/scheduling/affinity.py.
Affinity is a preference: if the worker is busy, silent or in trouble, or the address of a device
with sessions is unknown, the batch goes to the shared queue.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from poller.beat.routing.own_queues import OwnQueues
from poller.beat.routing.session_hosts import SessionHosts
from poller.bootstrap import Services
from poller.domain.batched import batched
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity, home_table, queue_routing
from poller.domain.scheduling.affinity import Homes
from poller.state.cluster.worker_registry import (
    ONE_HEARTBEAT_MISSED_MS,
    TWO_HEARTBEATS_MISSED_MS,
)


class BatchRouter:
    """The leader's choice between the queue of one worker and the shared queue."""

    def __init__(self, services: Services, hosts: SessionHosts) -> None:
        self._hosts = hosts
        self._own = OwnQueues(services)
        #: By shared queue, those with more than one worker.
        self._homes: dict[str, Homes] = {}
        #: Shared queue -> address -> worker, computed at first use; "" for an unknown address.
        self._assignments: dict[str, dict[str, str]] = {}
        #: Slots of the workers that may get batches of their own now, by own queue.
        self._slots: dict[str, int] = {}
        self._described: list[object] = []  # the workers that the homes were computed from

    def forget(self) -> None:
        """Start a new term: another leader may have published to other queues."""
        self._own.forget()

    def use_survey(self, depths: Mapping[str, int]) -> None:
        """Start a round: the survey read the depths of all queues of single workers."""
        self._own.use_survey(depths)

    def refresh(self, living: Sequence[Worker], now_ms: int) -> bool:
        """Update the living workers. Returns whether the cache of addresses needs a refresh.

        A worker that missed one heartbeat gets no batch of its own; one that missed two has no
        targets of its own any more. Raises StoreError.
        """
        heard = _heard_within(living, TWO_HEARTBEATS_MISSED_MS, now_ms)
        prompt = _heard_within(heard, ONE_HEARTBEAT_MISSED_MS, now_ms)
        self._slots = affinity.able_slots(prompt)

        described = _described(heard)
        has_changed = described != self._described
        # The next three may raise: the next refresh then still notices that the workers changed.
        self._own.hand_over(affinity.own_queues(prompt))
        homes = affinity.homes(heard) if has_changed else self._homes
        self._own.register(_own_queues(homes))
        if not has_changed:
            return False
        self._described = described
        return self._reassign(homes)

    def remaining(self, capacities: Mapping[str, int]) -> Mapping[str, int]:
        """Capacities less the batches that wait in the queues of single workers.

        At least 1 remains for each queue, so that an urgent target is always claimed.
        """
        if not self._homes:
            return capacities
        waiting = self._own.waiting()
        return {
            queue: max(1, capacity - waiting.get(queue, 0))
            for queue, capacity in capacities.items()
        }

    def batches(
        self, queue: str, ids: Sequence[int], size: int
    ) -> Iterator[tuple[str, Sequence[int]]]:
        """Divide claimed targets into batches: (queue to publish to, ids)."""
        homes = self._homes.get(queue)
        if homes is None:
            for batch in batched(ids, size):
                yield queue, batch
            return

        by_worker = self._divide(queue, homes, ids)
        shared = by_worker.pop("", [])
        is_any_free = self._is_any_free(queue, homes)
        for worker, worker_ids in by_worker.items():
            own_queue = affinity.own_queue(queue, worker)
            room = self._own.room(own_queue, self._slots.get(own_queue, 0), is_any_free)
            for batch in batched(worker_ids, size):
                if room > 0:
                    room -= 1
                    self._own.publish(own_queue)
                    yield own_queue, batch
                else:
                    shared += batch
        for batch in batched(shared, size):
            yield queue, batch

    def destinations(self, queue: str) -> int:
        """The number of workers that the targets of a queue are divided among."""
        homes = self._homes.get(queue)
        return len(homes.shares) if homes else 1

    def _is_any_free(self, queue: str, homes: Homes) -> bool:
        """Whether a worker of the queue, which may get batches, takes them at once."""
        own_queues = [affinity.own_queue(queue, worker) for worker in homes.workers]
        return any(self._own.is_free(name) for name in own_queues if name in self._slots)

    def _reassign(self, homes: dict[str, Homes]) -> bool:
        """Keep the assignments of hosts while the workers of their queue stay the same.

        Returns whether addresses are missing.
        """
        assignments: dict[str, dict[str, str]] = {}
        for queue, home in homes.items():
            if home.is_by_host:
                before = self._homes.get(queue)
                is_unchanged = before is not None and before.workers == home.workers
                assignments[queue] = self._assignments.get(queue, {}) if is_unchanged else {}
        self._homes = homes
        self._assignments = assignments
        collectors = {queue_routing.parse(queue)[0] for queue in assignments}
        return self._hosts.add_collectors(collectors)

    def _divide(self, queue: str, homes: Homes, ids: Sequence[int]) -> dict[str, list[int]]:
        """Targets by worker; those with an unknown address under ""."""
        if not homes.is_by_host:
            return home_table.home_table(homes.shares).divide(ids)

        assignments = self._assignments[queue]
        by_worker: dict[str, list[int]] = {}
        for target_id in ids:
            address = self._hosts.address_of(target_id)
            worker = assignments.get(address)
            if worker is None:
                worker = affinity.preferred_worker(address, homes.workers) if address else ""
                assignments[address] = worker
            by_worker.setdefault(worker, []).append(target_id)
        return by_worker


def _heard_within(workers: Sequence[Worker], silent_ms: int, now_ms: int) -> list[Worker]:
    """The workers whose heartbeat is recent."""
    return [worker for worker in workers if abs(now_ms - worker.seen_ms) < silent_ms]


def _described(workers: Sequence[Worker]) -> list[object]:
    """All that the homes depend on."""
    return [
        (worker.name, worker.slots, worker.queues, worker.own_queues, worker.sessions)
        for worker in workers
    ]


def _own_queues(homes: Mapping[str, Homes]) -> list[str]:
    """The own queues that batches may be published to."""
    return [
        affinity.own_queue(queue, worker)
        for queue, home in homes.items()
        for worker in home.workers
    ]
