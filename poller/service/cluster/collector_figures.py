"""The figures of collectors: who uses each, and how its polls of the last day went.

Every read is bounded: the counters of polls are kept by collector and hour, targets are counted
once for each version of the inventory, and the slowest targets of a day are kept for minutes.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db import engine as sql
from poller.db.fleet import collector_usage
from poller.db.fleet.collector_usage import Usage
from poller.db.inventory import inventory_feed
from poller.db.record import slow_targets
from poller.db.record.slow_targets import SlowTarget
from poller.domain.inventory import did_you_mean
from poller.domain.metrics.poll_totals import PollTotals
from poller.domain.record import target_day
from poller.domain.record.collector_day import AllFigures, CollectorFigures
from poller.state.figures import hourly_totals

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: A count of targets serves for as many times the time that it took.
_REST = 20
#: The slowest targets of a day serve this long, and for as many times the time that they took.
SLOWEST_AGE_S = 300.0
_SLOWEST_REST = 200
SLOWEST = 10
#: Collectors whose slowest targets are kept.
MOST_KEPT = 200


@dataclass(frozen=True, slots=True)
class SlowTargets:
    """The slowest targets of a collector, of a day; or of the newest polls, if the day has none."""

    rows: Sequence[SlowTarget] = ()
    day_ms: int | None = None


def read(services: Services) -> AllFigures:
    """Return the figures of all collectors. Raises StoreError."""
    now_ms = services.board.now_ms()
    since = hourly_totals.last_day(services.redis, services.keys, now_ms)
    usage = _cache_of(services).usage()
    polled = {name for name, each in since.by_collector.items() if each.polls or +each.codes}
    names = usage.keys() | polled
    by_collector = {
        name: CollectorFigures(
            *usage.get(name, Usage(0, 0)), since.by_collector.get(name) or PollTotals()
        )
        for name in names
    }
    return AllFigures(now_ms, since.since_ms, by_collector)


def refuse_unknown(services: Services, name: str, figures: AllFigures) -> None:
    """Raise NotFound with the nearest name for one that is neither installed here nor used."""
    known = {*services.registry.collectors, *figures.by_collector}
    did_you_mean.refuse_unknown("collector", name, known, "poller collectors")


def slowest(services: Services, name: str) -> SlowTargets:
    """Return the slowest targets of the last day that ended, or of now. Raises StoreError."""
    [day_ms] = target_day.ended_days(services.board.now_ms(), 1)
    return _cache_of(services).slowest(name, day_ms)


class _FigureCache:
    """The counts of one process, safe for threads: one caller counts, others wait."""

    def __init__(self, services: Services) -> None:
        self._services = weakref.proxy(services)
        self._lock = threading.Lock()
        self._usage: Mapping[str, Usage] = {}
        self._version: int | None = None
        self._rests_until_mono = 0.0
        self._slowest: dict[str, tuple[float, SlowTargets]] = {}

    def usage(self) -> Mapping[str, Usage]:
        """The users of each collector, counted again after a change of the inventory."""
        with self._lock:
            if time.monotonic() >= self._rests_until_mono:
                self._follow_inventory()
            return self._usage

    def slowest(self, name: str, day_ms: int) -> SlowTargets:
        with self._lock:
            expires_mono, found = self._slowest.get(name, (0.0, SlowTargets()))
            if time.monotonic() < expires_mono and found.day_ms in (None, day_ms):
                return found
            began_mono = time.monotonic()
            found = self._read_slowest(name, day_ms)
            rest_s = _SLOWEST_REST * (time.monotonic() - began_mono)
            age_s = SLOWEST_AGE_S if found.day_ms else 0.0
            if len(self._slowest) >= MOST_KEPT:
                self._slowest.clear()
            self._slowest[name] = (time.monotonic() + max(age_s, rest_s), found)
            return found

    def _follow_inventory(self) -> None:
        with sql.single_read(self._services.engine) as conn:
            version = inventory_feed.version_in(conn)
        if version == self._version:
            return
        began_mono = time.monotonic()
        self._usage = collector_usage.count(self._services.engine)
        self._version = version
        ended_mono = time.monotonic()
        self._rests_until_mono = ended_mono + _REST * (ended_mono - began_mono)

    def _read_slowest(self, name: str, day_ms: int) -> SlowTargets:
        engine = self._services.engine
        of_day = slow_targets.of_day(engine, name, day_ms, SLOWEST)
        if of_day:
            return SlowTargets(of_day, day_ms)
        return SlowTargets(slow_targets.of_newest(engine, name, SLOWEST))


_lock = threading.Lock()
_caches: weakref.WeakKeyDictionary[Services, _FigureCache] = weakref.WeakKeyDictionary()


def _cache_of(services: Services) -> _FigureCache:
    with _lock:
        cache = _caches.get(services)
        if cache is None:
            cache = _caches[services] = _FigureCache(services)
        return cache
