"""Session affinity: batches go to the worker that holds the sessions of their devices.

Each worker has a queue of its own beside the shared ones; see domain/scheduling/affinity.py.
Affinity is a preference: if the worker is busy, silent or unknown, or the address of the device is
unknown, the batch goes to the shared queue.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence

from sqlalchemy.engine import Engine

from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.domain.batched import batched
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity, queue_routing
from poller.observability import logs
from poller.state.cluster import worker_queues
from poller.state.cluster.worker_registry import FORGET_AFTER_MS, TWO_HEARTBEATS_MISSED_MS

log = logs.get(__name__)

#: The own queue of a worker is forgotten when the registry forgets the worker.
FORGET_AFTER_S = FORGET_AFTER_MS / 1000


class SessionHosts:
    """Device addresses of the targets whose collectors hold sessions, cached from SQL.

    The tick calls `add_collectors` and `address_of`, the SQL thread calls `refresh`. For a fleet
    without sessions nothing is read.
    """

    def __init__(self) -> None:
        self._collectors: frozenset[str] = frozenset()
        self._cached_collectors: frozenset[str] = frozenset()
        self._version = 0
        self._addresses: dict[int, str] = {}

    def add_collectors(self, collectors: set[str]) -> bool:
        """Cache the targets of these collectors too. Returns whether a refresh is needed."""
        self._collectors |= collectors
        return not collectors <= self._cached_collectors

    def address_of(self, target_id: int) -> str:
        """The address of the target's device; "" if it is not cached."""
        return self._addresses.get(target_id, "")

    def refresh(self, engine: Engine) -> None:
        """Read the changes of the inventory since the last refresh. Raises StoreError."""
        collectors = self._collectors
        if not collectors:
            return
        version = inventory_feed.version(engine)
        same_collectors = collectors == self._cached_collectors
        if same_collectors and version == self._version:
            return

        read_all = not same_collectors or version < self._version
        since = 0 if read_all else self._version
        changes = inventory_feed.hosts_since(engine, collectors, since)
        if since and not changes.is_complete:
            read_all = True
            changes = inventory_feed.hosts_since(engine, collectors, 0)
        addresses = {target_id: sys.intern(address) for target_id, address in changes.hosts}
        if read_all:
            self._addresses = addresses
        else:
            for target_id in changes.removed:
                self._addresses.pop(target_id, None)
            self._addresses.update(addresses)
        self._cached_collectors = collectors
        self._version = changes.version


class SessionAffinity:
    """The leader's choice between the queue of one worker and the shared queue."""

    def __init__(self, services: Services, hosts: SessionHosts) -> None:
        self._redis = services.redis
        self._keys = services.keys
        self._hosts = hosts
        #: Shared queue -> workers that hold sessions of its targets.
        self._session_workers: dict[str, tuple[str, ...]] = {}
        #: Shared queue -> address -> worker, computed at first use; "" for an unknown address.
        self._assignments: dict[str, dict[str, str]] = {}
        self._slots: dict[str, int] = {}
        self._depths: dict[str, int] = {}
        #: What the survey of this round read and stored already.
        self._surveyed_depths: Mapping[str, int] = {}
        self._surveyed_names: frozenset[str] = frozenset()
        self._own_queues: set[str] | None = None  # None: not read from Redis yet
        self._unserved_since_mono: dict[str, float] = {}

    def forget(self) -> None:
        """Start a new term: another leader may have published to other queues."""
        self._own_queues = None

    def queues_to_survey(self) -> list[str]:
        """The queues of single workers that the next round needs, as far as they are known."""
        names = set(self._own_queues or ())
        for queue, workers in self._session_workers.items():
            names.update(affinity.own_queue(queue, worker) for worker in workers)
        return sorted(names)

    def use_survey(self, depths: Mapping[str, int]) -> None:
        """Start a round: the survey read these depths, and stored the names of these queues."""
        self._surveyed_depths = depths
        self._surveyed_names = frozenset(depths)
        if self._own_queues is not None:
            self._own_queues.update(depths)

    def refresh(self, living: Sequence[Worker], now_ms: int) -> bool:
        """Update the living workers. Returns whether the cache of addresses needs a refresh.

        Assignments change only for queues whose workers changed. Batches that wait for a lost
        worker move to the shared queue; `start` rejects duplicates. Raises StoreError.
        """
        heard = [
            worker for worker in living if abs(now_ms - worker.seen_ms) < TWO_HEARTBEATS_MISSED_MS
        ]
        self._slots = {worker.name: worker.slots for worker in heard}
        # First: if it raises, the next refresh still notices that the workers changed.
        self._hand_over_unserved(affinity.own_queues(heard))

        session_workers = affinity.session_workers(heard)
        needs_addresses = False
        if session_workers != self._session_workers:
            self._reassign(session_workers)
            collectors = {queue_routing.parse(queue)[0] for queue in session_workers}
            needs_addresses = self._hosts.add_collectors(collectors)
        return needs_addresses

    def remaining(self, capacities: Mapping[str, int]) -> Mapping[str, int]:
        """Capacities less the batches that wait in the queues of single workers.

        At least 1 remains for each queue, so that an urgent target is always claimed.
        """
        if not self._session_workers:
            return capacities
        own_queues = {
            queue: [
                affinity.own_queue(queue, worker) for worker in self._session_workers.get(queue, ())
            ]
            for queue in capacities
        }
        all_own_queues = [name for names in own_queues.values() for name in names]
        self._depths = self._read_depths(all_own_queues)
        self._surveyed_depths = {}  # the next claim of this round reads them again

        remaining = {}
        for queue, capacity in capacities.items():
            waiting = sum(self._depths[name] for name in own_queues[queue])
            remaining[queue] = max(1, capacity - waiting)
        return remaining

    def batches(
        self, queue: str, ids: Sequence[str], size: int
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Divide claimed targets into batches: (queue to publish to, ids).

        Raises StoreError before the first batch.
        """
        assignments = self._assignments.get(queue)
        if assignments is None:
            for batch in batched(ids, size):
                yield queue, batch
            return

        by_worker = self._group_by_worker(assignments, self._session_workers[queue], ids)
        shared = by_worker.pop("", [])
        self._register({affinity.own_queue(queue, worker) for worker in by_worker})
        for worker, worker_ids in by_worker.items():
            own_queue = affinity.own_queue(queue, worker)
            for batch in batched(worker_ids, size):
                depth = self._depths.get(own_queue, 0)
                if depth < self._slots.get(worker, 0):
                    self._depths[own_queue] = depth + 1
                    yield own_queue, batch
                else:
                    shared += batch
        for batch in batched(shared, size):
            yield queue, batch

    def _reassign(self, session_workers: dict[str, tuple[str, ...]]) -> None:
        """Keep the assignments of a queue while its workers stay the same."""
        assignments = {}
        for queue, workers in session_workers.items():
            unchanged = self._session_workers.get(queue) == workers
            assignments[queue] = self._assignments[queue] if unchanged else {}
        self._assignments = assignments
        self._session_workers = session_workers

    def _hand_over_unserved(self, served: set[str]) -> None:
        """Move the batches of queues without a worker to the shared queues."""
        own_queues = self._load_own_queues()
        unserved = own_queues - served
        now_mono = time.monotonic()
        since = {name: self._unserved_since_mono.get(name, now_mono) for name in unserved}
        self._unserved_since_mono = since
        for name, depth in self._read_depths(unserved).items():
            if depth:
                moved = worker_queues.hand_over(self._redis, name, affinity.shared_queue(name))
                log.info("batches_handed_over", queue=name, batches=moved)
            elif now_mono - since[name] > FORGET_AFTER_S:
                worker_queues.forget(self._redis, self._keys, name)
                own_queues.discard(name)

    def _group_by_worker(
        self, assignments: dict[str, str], workers: Sequence[str], ids: Sequence[str]
    ) -> dict[str, list[str]]:
        """Targets by worker; those with an unknown address under ""."""
        by_worker: dict[str, list[str]] = {}
        for target_id in ids:
            address = self._hosts.address_of(int(target_id))
            worker = assignments.get(address)
            if worker is None:
                worker = affinity.preferred_worker(address, workers) if address else ""
                assignments[address] = worker
            by_worker.setdefault(worker, []).append(target_id)
        return by_worker

    def _register(self, own_queues: set[str]) -> None:
        """Store the names before each publish: Redis may have been emptied since the last one."""
        unknown = own_queues - self._surveyed_names
        if unknown:
            worker_queues.add_own(self._redis, self._keys, unknown)
        self._load_own_queues().update(own_queues)

    def _read_depths(self, names: Iterable[str]) -> dict[str, int]:
        """The depths that the survey did not read are read now."""
        depths = {name: self._surveyed_depths.get(name, -1) for name in names}
        missing = [name for name, depth in depths.items() if depth < 0]
        return depths | worker_queues.depths(self._redis, missing)

    def _load_own_queues(self) -> set[str]:
        if self._own_queues is None:
            self._own_queues = worker_queues.own(self._redis, self._keys)
        return self._own_queues
