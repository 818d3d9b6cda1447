"""The targets this worker polls, kept in memory: one SQL statement for a batch of new ones, none
for cached ones.

A target's options are validated here, once per version. Credentials are in `credential_cache`.
"""

from __future__ import annotations

import math
import threading
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from sqlalchemy.engine import Engine

from poller import errors
from poller.collectors.memory.shared_options import SharedOptions
from poller.collectors.registry import Registry
from poller.db import bounded_reads
from poller.db.bounded_reads import BoundedReads
from poller.db.inventory import inventory_feed
from poller.domain.inventory.poll_target import PollTarget
from poller.observability import logs
from poller.workers.inventory.inventory_copy import InventoryCopy

log = logs.get(__name__)

#: A target that is polled elsewhere is forgotten after this long, and after some of its intervals.
IDLE_LIMIT_S = 600.0
IDLE_INTERVALS = 4
#: Idle targets are looked for this often.
SWEEP_S = 60.0
#: Validation that takes longer than this is logged while it runs. A validator cannot be ended, and
#: its batch waits.
SLOW_VALIDATION_S = 5.0


@dataclass(slots=True)
class CachedTarget:
    """A target with its validated options, or with the error that makes it unusable."""

    target: PollTarget
    version: int  # the board's version when the target was read
    options: Any = None
    problem: errors.PollerError | None = None
    memory: dict[str, Any] = field(default_factory=dict)  # the collector's, from poll to poll
    watch: Any = None  # what alert rules look at, see workers/alerts/poll_judge.py
    used_mono: float = 0.0
    is_new: bool = True  # its credential is read again by the first batch that gets it
    outdated_mono: float = 0.0  # since when the board has a newer version that cannot be read


@dataclass(frozen=True, slots=True)
class LoadedTargets:
    """The targets of one batch. Removed targets are missing."""

    by_id: dict[int, CachedTarget]
    changed_credentials: set[int]  # credentials of targets that were read anew


class TargetCache:
    """A bounded cache, safe for threads. An entry older than the version on the board is read
    again; while SQL does not answer it serves as it is, for up to `stale_limit_s`. A target that is
    not cached then comes from the copy of the inventory.

    A target that is not polled here any more, because another worker came or came back, is
    forgotten. Otherwise a full cache keeps its entries. Targets fall due in turns: evicting the
    oldest for each new one would evict every target shortly before its next poll.
    """

    def __init__(
        self,
        engine: Engine,
        registry: Registry,
        limit: int,
        stale_limit_s: float = math.inf,
        reads: BoundedReads | None = None,
        copy: InventoryCopy | None = None,
    ) -> None:
        self._engine = engine
        self._options = SharedOptions(registry)
        self._limit = limit
        self._stale_limit_s = stale_limit_s
        self._reads = reads or BoundedReads()
        self._copy = copy
        self._lock = threading.Lock()
        self._cached: OrderedDict[int, CachedTarget] = OrderedDict()  # least recently used first
        self._was_full = False
        self._sweep_mono = 0.0  # when idle targets are looked for next

    def count_uncached(self, ids: Iterable[int]) -> int:
        with self._lock:
            return sum(target_id not in self._cached for target_id in ids)

    def load(self, versions: Mapping[int, int], now_mono: float) -> LoadedTargets:
        """Return the targets of a batch, given the board's version of each.

        While SQL does not answer, edited targets are returned as they were, others as the copy of
        the inventory has them, and unknown ones are missing too. Raises StoreError if that leaves
        none.
        """
        cached = self._get_cached(versions, now_mono)
        missing = [target_id for target_id in versions if target_id not in cached]

        outdated = self._get_outdated(missing, now_mono)
        self._forget_idle(now_mono)
        fresh: dict[int, CachedTarget] = {}
        if missing:
            is_cold = not cached and not outdated
            try:
                fresh = self._read(missing, versions, now_mono, is_cold)
            except errors.StoreError as error:
                copied = self._take_from_copy(set(missing).difference(outdated), now_mono)
                if is_cold and not copied:
                    raise
                fresh = {**outdated, **copied}
                log.warning(
                    "targets_not_read",
                    outdated=len(outdated),
                    copied=len(copied),
                    unknown=len(missing) - len(fresh),
                    error=str(error),
                )

        return _loaded({**cached, **fresh})

    def _get_cached(self, versions: Mapping[int, int], now_mono: float) -> dict[int, CachedTarget]:
        current: dict[int, CachedTarget] = {}
        with self._lock:
            for target_id, version in versions.items():
                cached = self._cached.get(target_id)
                if cached is None or cached.version < version:
                    continue
                cached.used_mono = now_mono
                self._cached.move_to_end(target_id)
                current[target_id] = cached
        return current

    def _get_outdated(self, ids: Iterable[int], now_mono: float) -> dict[int, CachedTarget]:
        """Return the entries that are older than the board, and not for too long."""
        outdated = {}
        with self._lock:
            for target_id in ids:
                cached = self._cached.get(target_id)
                if cached is None:
                    continue
                cached.used_mono = now_mono
                self._cached.move_to_end(target_id)
                cached.outdated_mono = cached.outdated_mono or now_mono
                if now_mono - cached.outdated_mono <= self._stale_limit_s:
                    outdated[target_id] = cached
        return outdated

    def _read(
        self, ids: Sequence[int], versions: Mapping[int, int], now_mono: float, is_cold: bool
    ) -> dict[int, CachedTarget]:
        """Read targets while the batch waits, but not for long."""
        query = partial(inventory_feed.poll_targets, self._engine, ids)
        can_only_wait = is_cold and (self._copy is None or self._copy.current_mono is None)
        patience_s = bounded_reads.COLD_PATIENCE_S if can_only_wait else bounded_reads.PATIENCE_S
        rows = self._reads.read(query, patience_s, partial(self._add_late, versions, now_mono))
        return self._add(versions, now_mono, rows)

    def _take_from_copy(self, ids: Iterable[int], now_mono: float) -> dict[int, CachedTarget]:
        """Cache targets as the copy has them. Those that were edited since are outdated."""
        rows = self._copy.targets(ids) if self._copy is not None else {}
        return self._add({}, now_mono, rows)

    def _add_late(
        self, versions: Mapping[int, int], now_mono: float, rows: Mapping[int, PollTarget]
    ) -> None:
        """Add targets whose batch went on without them, unless they were read again since."""
        with self._lock:
            current = {
                target_id
                for target_id in rows
                if target_id in self._cached
                and self._cached[target_id].version >= versions[target_id]
            }
        late = {target_id: row for target_id, row in rows.items() if target_id not in current}
        self._add(versions, now_mono, late)

    def _add(
        self, versions: Mapping[int, int], now_mono: float, rows: Mapping[int, PollTarget]
    ) -> dict[int, CachedTarget]:
        """Cache each target as soon as its options are validated: a next attempt continues from
        there.
        """
        fresh: dict[int, CachedTarget] = {}
        with _slow_validation_logged(rows, fresh):
            for target_id, target in rows.items():
                version = max(versions.get(target_id, 0), target.version)
                cached = self._validate(target, version)
                self._store(cached, now_mono)
                fresh[target_id] = cached
        return fresh

    def _validate(self, target: PollTarget, version: int) -> CachedTarget:
        try:
            valid = self._options.validate(target.collector, target.options)
        except errors.ConfigError as error:
            return CachedTarget(target, version, problem=error)
        return CachedTarget(replace(target, options=valid.raw), version, valid.options)

    def _store(self, cached: CachedTarget, now_mono: float) -> None:
        cached.used_mono = now_mono
        target_id = cached.target.id
        with self._lock:
            if target_id in self._cached or self._make_room():
                self._cached[target_id] = cached
                self._cached.move_to_end(target_id)

    def _forget_idle(self, now_mono: float) -> None:
        with self._lock:
            if now_mono < self._sweep_mono:
                return
            self._sweep_mono = now_mono + SWEEP_S
            idle = self._idle(now_mono)
            for target_id in idle:
                del self._cached[target_id]
        if idle:
            log.info("idle_targets_forgotten", targets=len(idle))

    def _idle(self, now_mono: float) -> list[int]:
        idle = []
        for target_id, cached in self._cached.items():
            idle_s = now_mono - cached.used_mono
            if idle_s <= IDLE_LIMIT_S:
                break  # all others were used later
            if idle_s > IDLE_INTERVALS * _longest_interval_s(cached.target):
                idle.append(target_id)
        return idle

    def _make_room(self) -> bool:
        if len(self._cached) < self._limit:
            return True
        if not self._was_full:
            self._was_full = True
            hint = "raise POLLER_TARGET_CACHE, or add workers"
            log.warning("target_cache_full", limit=self._limit, hint=hint)
        return False


def _longest_interval_s(target: PollTarget) -> float:
    return max(target.interval_ms, target.max_ms or 0) / 1000


def _loaded(by_id: dict[int, CachedTarget]) -> LoadedTargets:
    changed: set[int] = set()
    for cached in by_id.values():
        if cached.is_new:
            cached.is_new = False
            if cached.target.credential_id is not None:
                changed.add(cached.target.credential_id)
    return LoadedTargets(by_id, changed)


@contextmanager
def _slow_validation_logged(
    rows: Mapping[int, PollTarget], fresh: Mapping[int, CachedTarget]
) -> Iterator[None]:
    """Log the collector whose options take long to validate; the only other symptom is late
    polls.
    """

    def warn() -> None:
        unchecked = [target for target_id, target in rows.items() if target_id not in fresh]
        if not unchecked:
            return
        target = unchecked[0]
        log.warning(
            "options_checked_slowly",
            collector=target.collector,
            target=f"{target.device}/{target.name}",
            seconds=SLOW_VALIDATION_S,
            done=len(fresh),
            of=len(rows),
            fix="the validators of a collector's Options must not wait for anything",
        )

    timer = threading.Timer(SLOW_VALIDATION_S, warn)
    timer.daemon = True
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
