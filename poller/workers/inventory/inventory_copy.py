"""The worker's copy of the inventory: every target that its queues may bring, with the encrypted
credentials of these targets.

A target is cached by its home only. Any other worker that gets it while SQL does not answer polls
it as the copy has it. The copy is read in advance, in a thread.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Sequence

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import inventory_feed
from poller.db.inventory.inventory_feed import Sealed
from poller.domain.batched import batched
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.scheduling import queue_routing
from poller.observability import logs
from poller.workers.inventory.packed_rows import PackedRows

log = logs.get(__name__)

#: The copy follows the inventory this often.
REFRESH_S = 30.0
#: Targets of one read, and the pause after it, which is for the polls.
CHUNK = 250
CHUNK_PAUSE_S = 0.1


class InventoryCopy:
    """One per worker process, with a thread that ends when the worker stops."""

    def __init__(self, services: Services, stopping: threading.Event) -> None:
        self._engine = services.engine
        self._collectors = services.registry.collectors
        self._tags = queue_routing.parse_tags(services.settings.worker_tags)
        self._stopping = stopping
        self._targets: PackedRows[PollTarget] = PackedRows()
        self._credentials: PackedRows[Sealed] = PackedRows()
        self._version = 0
        self._serves_queue: dict[str, bool] = {}
        self._start_lock = threading.Lock()
        self._is_started = False
        #: When the copy was known to be current last, by the monotonic clock; None before that.
        self.current_mono: float | None = None

    def start(self) -> None:
        """Start the thread, in the process that polls. A second call does nothing."""
        if self._is_started:
            return
        with self._start_lock:
            if not self._is_started:
                self._is_started = True
                threading.Thread(target=self._run, name="inventory-copy", daemon=True).start()

    def targets(self, ids: Iterable[int]) -> dict[int, PollTarget]:
        """Return targets as the copy has them; unknown ones are missing."""
        return self._targets.get(ids)

    def credentials(self, ids: Iterable[int]) -> dict[int, Sealed]:
        """Return credentials, encrypted, as the copy has them; unknown ones are missing."""
        return self._credentials.get(ids)

    def refresh(self) -> None:
        """Follow the changes of the inventory. Raises StoreError."""
        asked_mono = time.monotonic()
        if self.current_mono is None or not self._follow():
            self._read_all()
        self.current_mono = asked_mono

    def _follow(self) -> bool:
        """Read what changed since the last refresh. Returns False if only a full read can tell."""
        if inventory_feed.version(self._engine) == self._version:
            return True
        changes = inventory_feed.changes_since(self._engine, self._version)
        if changes.version < self._version or not changes.is_complete:
            return False
        served = [spec.id for spec in changes.specs if self._serves(spec.queue)]
        moved = {spec.id for spec in changes.specs}.difference(served)
        self._read(served, self._targets, self._credentials)
        self._targets.remove([*changes.removed, *moved])
        self._version = changes.version
        return True

    def _read_all(self) -> None:
        started_mono = time.monotonic()
        with inventory_feed.all_specs(self._engine) as fleet:
            served = [spec.id for spec in fleet.specs if self._serves(spec.queue)]
        targets: PackedRows[PollTarget] = PackedRows()
        credentials: PackedRows[Sealed] = PackedRows()
        self._read(sorted(served), targets, credentials)
        self._targets, self._credentials = targets, credentials
        self._version = fleet.version
        seconds = round(time.monotonic() - started_mono, 1)
        log.info("inventory_copied", targets=len(served), seconds=seconds)

    def _read(
        self,
        ids: Sequence[int],
        targets: PackedRows[PollTarget],
        credentials: PackedRows[Sealed],
    ) -> None:
        """Read targets and their credentials, a chunk at a time."""
        for chunk in batched(ids, CHUNK):
            rows = inventory_feed.poll_targets(self._engine, chunk)
            targets.put(rows)
            used = {row.credential_id for row in rows.values() if row.credential_id is not None}
            if used:
                credentials.put(inventory_feed.credentials(self._engine, used))
            if len(ids) > CHUNK and self._stopping.wait(CHUNK_PAUSE_S):
                return

    def _serves(self, queue: str) -> bool:
        """Whether this worker takes batches of the queue. A fleet has few queues."""
        serves = self._serves_queue.get(queue)
        if serves is None:
            serves = queue_routing.serves(queue, self._collectors, self._tags)
            self._serves_queue[queue] = serves
        return serves

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self.refresh()
            except errors.StoreError as error:
                log.warning("inventory_not_copied", error=str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("inventory_copy_broke")
            self._stopping.wait(REFRESH_S)
