"""The queues of single workers, from tick to tick: their names in Redis, depths and hand-overs.

A batch that its worker does not take moves to the shared queue; `start` rejects duplicates.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping

from poller.bootstrap import Services
from poller.domain.scheduling import affinity
from poller.domain.scheduling.own_queue_pace import QueuePace
from poller.observability import logs
from poller.state.cluster import worker_queues
from poller.state.cluster.worker_registry import FORGET_AFTER_MS

log = logs.get(__name__)

#: The own queue of a worker is forgotten when the registry forgets the worker.
FORGET_AFTER_S = FORGET_AFTER_MS / 1000


class OwnQueues:
    """Every method that asks Redis raises StoreError."""

    def __init__(self, services: Services) -> None:
        self._redis = services.redis
        self._keys = services.keys
        self._board = services.board
        self._paces: dict[str, QueuePace] = {}  # of every name in Redis
        self._is_read = False  # the paces follow a reading of this round
        self._unserved_since_mono: dict[str, float] = {}

    def forget(self) -> None:
        """Start a new term: another leader may have published to other queues."""
        self._paces = {}
        self._is_read = False

    def use_survey(self, depths: Mapping[str, int]) -> None:
        """Follow the depths of all queues that Redis knows."""
        now_mono = time.monotonic()
        paces = {}
        for name, depth in depths.items():
            pace = self._paces.get(name) or QueuePace(depth, now_mono)
            pace.read(depth, now_mono)
            paces[name] = pace
        self._paces = paces
        self._is_read = True

    def register(self, names: Collection[str]) -> None:
        """Store names before the first batch: the next leader needs the list."""
        self._read()
        unknown = [name for name in names if name not in self._paces]
        if unknown:
            worker_queues.add_own(self._redis, self._keys, unknown)
            now_mono = time.monotonic()
            self._paces.update({name: QueuePace(0, now_mono) for name in unknown})

    def waiting(self) -> Mapping[str, int]:
        """The batches that wait, by shared queue. A second call in one round reads them again."""
        self._read()
        self._is_read = False
        waiting: dict[str, int] = {}
        for name, pace in self._paces.items():
            if pace.waiting:
                shared = affinity.shared_queue(name)
                waiting[shared] = waiting.get(shared, 0) + pace.waiting
        return waiting

    def is_free(self, name: str) -> bool:
        """Whether no batch waited in the queue: its worker takes batches at once."""
        pace = self._paces.get(name)
        return pace is not None and not pace.had_to_wait

    def room(self, name: str, slots: int, is_other_free: bool) -> int:
        """The number of batches that may be published to the queue now."""
        pace = self._paces.get(name)
        return pace.room(slots, is_other_free) if pace else 0

    def publish(self, name: str) -> None:
        """Count a batch that is published to the queue."""
        self._paces[name].publish(time.monotonic())

    def hand_over(self, served: Collection[str]) -> None:
        """Move the batches that wait in queues without a worker, or with one that takes none while
        another one is free.

        Queues that had no worker for long are forgotten.
        """
        self._read()
        now_mono = time.monotonic()
        relieved = {affinity.shared_queue(name) for name in served if self.is_free(name)}
        unserved_since = {}
        for name, pace in list(self._paces.items()):
            is_served = name in served
            is_stalled = affinity.shared_queue(name) in relieved and pace.is_stalled(now_mono)
            if pace.waiting and (not is_served or is_stalled):
                self._move(name, pace)
            if not is_served:
                since_mono = self._unserved_since_mono.get(name, now_mono)
                unserved_since[name] = since_mono
                if not pace.waiting and now_mono - since_mono > FORGET_AFTER_S:
                    self._remove(name)
        self._unserved_since_mono = unserved_since

    def _move(self, name: str, pace: QueuePace) -> None:
        moved = worker_queues.hand_over(self._redis, name, affinity.shared_queue(name))
        pace.hand_over()
        if moved:
            log.info("batches_handed_over", queue=name, batches=moved)

    def _remove(self, name: str) -> None:
        worker_queues.forget(self._redis, self._keys, name)
        del self._paces[name]

    def _read(self) -> None:
        """Read the depths, unless the survey of this round did."""
        if not self._is_read:
            self.use_survey(worker_queues.own_depths(self._board.scripts))
