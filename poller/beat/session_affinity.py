"""Which batches go to one worker rather than to all? Those of devices whose sessions it keeps. See domain/scheduling/affinity.py.

Only a preference: whatever cannot go home - the worker is busy, silent or unknown, or the host is - goes to all.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence

from poller.beat.session_hosts import Hosts
from poller.bootstrap import Services
from poller.domain.batched import batched
from poller.domain.record.overview import Worker
from poller.domain.scheduling import affinity, queue_routing
from poller.observability import logs
from poller.state.cluster import worker_queues
from poller.state.cluster.worker_registry import TWO_HEARTBEATS_MISSED_MS

log = logs.get(__name__)

#: Workers that have been gone for so long will not come back by that name.
FORGET_AFTER_S = 900.0


class Homes:
    """The leader's. `ask` has the hosts read from SQL, by somebody who may wait for it."""

    def __init__(
        self, services: Services, hosts: Hosts, ask: Callable[[], None] = lambda: None
    ) -> None:
        self._redis, self._keys = services.redis, services.keys
        self._hosts = hosts
        self._ask = ask
        self._keepers: dict[str, tuple[str, ...]] = {}
        self._homes: dict[
            str, dict[str, str]
        ] = {}  # queue -> host -> worker, as far as they were asked for
        self._slots: dict[str, int] = {}
        self._waiting: dict[str, int] = {}
        self._own: set[str] | None = None  # not read yet
        self._gone_at: dict[str, float] = {}

    def forget(self) -> None:
        """We were not leading: somebody else may have published to other queues."""
        self._own = None

    def look(self, living: Sequence[Worker], now_ms: int) -> None:
        """Who is here? Homes stay what they are while nobody comes or goes. What waits for a worker that does not take
        it any more goes to all; whatever that sends twice is refused by `start`. Raises StoreError.
        """
        lately = [
            worker for worker in living if abs(now_ms - worker.seen_ms) < TWO_HEARTBEATS_MISSED_MS
        ]
        self._slots = {worker.name: worker.slots for worker in lately}
        keepers = affinity.session_workers(lately)
        if keepers != self._keepers:
            unchanged = {
                q: self._homes[q] for q, names in keepers.items() if self._keepers.get(q) == names
            }
            self._homes = {queue: unchanged.get(queue, {}) for queue in keepers}
            self._keepers = keepers
            if self._hosts.want({queue_routing.parse(queue)[0] for queue in keepers}):
                self._ask()
        self._hand_over(affinity.own_queues(lately))

    def narrowed(self, rooms: Mapping[str, int]) -> Mapping[str, int]:
        """Less room where batches wait in the workers' own queues; never none, so that what is urgent finds some."""
        if not self._keepers:
            return rooms
        names = {
            queue: [affinity.own_queue(queue, worker) for worker in self._keepers.get(queue, ())]
            for queue in rooms
        }
        self._waiting = worker_queues.depths(
            self._redis, [name for own in names.values() for name in own]
        )
        return {
            queue: max(1, room - sum(self._waiting[n] for n in names[queue]))
            for queue, room in rooms.items()
        }

    def batches(
        self, queue: str, ids: Sequence[str], size: int
    ) -> Iterator[tuple[str, Sequence[str]]]:
        """Claimed targets, each batch with the queue it goes to. Raises StoreError before the first."""
        homes = self._homes.get(queue)
        if homes is None:
            yield from ((queue, batch) for batch in batched(ids, size))
            return
        by_worker = self._by_worker(homes, self._keepers[queue], ids)
        self._note({affinity.own_queue(queue, worker) for worker in by_worker if worker})
        homeless = by_worker.pop("", [])
        for worker, share in by_worker.items():
            name = affinity.own_queue(queue, worker)
            for batch in batched(share, size):
                if self._waiting.get(name, 0) < self._slots.get(worker, 0):
                    self._waiting[name] = self._waiting.get(name, 0) + 1
                    yield name, batch
                else:
                    homeless += batch
        yield from ((queue, batch) for batch in batched(homeless, size))

    def _hand_over(self, taken: set[str]) -> None:
        own, clock = self._known_queues(), time.monotonic()
        gone = own - taken
        self._gone_at = {name: self._gone_at.get(name, clock) for name in gone}
        for name, waiting in worker_queues.depths(self._redis, gone).items():
            if waiting:
                moved = worker_queues.hand_over(self._redis, name, affinity.shared_queue(name))
                log.info("batches_handed_over", queue=name, batches=moved)
            elif clock - self._gone_at[name] > FORGET_AFTER_S:
                worker_queues.forget(self._redis, self._keys, name)
                own.discard(name)

    def _by_worker(
        self, homes: dict[str, str], keepers: Sequence[str], ids: Sequence[str]
    ) -> dict[str, list[str]]:
        """Without a worker's name: targets whose host we do not know yet."""
        found: dict[str, list[str]] = {}
        for target_id in ids:
            host = self._hosts.of(int(target_id))
            worker = homes.get(host)
            if worker is None:
                worker = homes[host] = affinity.preferred_worker(host, keepers) if host else ""
            found.setdefault(worker, []).append(target_id)
        return found

    def _note(self, names: set[str]) -> None:
        if names:  # each time: a Redis that was emptied has forgotten them
            worker_queues.add_own(self._redis, self._keys, names)
            self._known_queues().update(names)

    def _known_queues(self) -> set[str]:
        if self._own is None:
            self._own = worker_queues.own(self._redis, self._keys)
        return self._own
