"""The failing targets of the fleet with their sites: causes, and the state of each site.

The board lists what is not ok, so the cost follows the trouble and not the size of the fleet. One
picture serves all viewers of a process and is at most some seconds old. Where targets are is read
once for each of them, and again after a change of the inventory.
"""

from __future__ import annotations

import threading
import time
import weakref
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from poller.db import engine as sql
from poller.db.fleet import fleet_places
from poller.db.fleet.fleet_places import Place
from poller.db.inventory import inventory_feed
from poller.domain.failures.site_outage import Outage
from poller.domain.fleet import failing_causes
from poller.domain.fleet.failing_causes import Cause, FailingTarget, SiteSummary
from poller.domain.record import target_condition, target_status
from poller.domain.record.overview import Overview, State
from poller.state.board.unwell_targets import UnwellTargets
from poller.state.cluster import site_windows
from poller.state.redis_client import store_errors

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: A picture serves all viewers for this long, and for as many times the time that it took.
MAX_AGE_S = 3.0
_REST = 20
#: More failing targets than this are not looked at one by one.
MOST = 50_000


@dataclass(frozen=True, slots=True)
class FleetPicture:
    """Why targets fail and where. With more failing targets than `MOST` there are no causes."""

    causes: Sequence[Cause] = ()
    sites: Sequence[SiteSummary] = ()
    failing_devices: int = 0
    devices: int = 0
    is_complete: bool = True
    as_of_ms: int = 0  # the instant at which it was taken; 0: no picture could be taken yet


def agreeing(found: FleetPicture, overview: Overview) -> FleetPicture:
    """Return a picture without what a newer overview denies: sites that are dark, and failures."""
    sites = failing_causes.with_dark(found.sites, overview.dark)
    if overview.states.get(State.FAILING, 0):
        return replace(found, sites=sites)
    well = failing_causes.worst_first(replace(site, failing=0) for site in sites)
    return replace(found, causes=(), sites=well, failing_devices=0, is_complete=True)


def picture(services: Services) -> FleetPicture:
    """Return the picture, at most some seconds old. Raises StoreError."""
    with _lock:
        cache = _caches.get(services)
        if cache is None:
            cache = _caches[services] = _PictureCache(services)
    return cache.get()


class _PictureCache:
    """The newest picture of one process, safe for threads: one caller renews it, others wait."""

    def __init__(self, services: Services) -> None:
        self._services = weakref.proxy(services)
        self._lock = threading.Lock()
        self._places: dict[int, Place] = {}
        self._site_sizes: Mapping[str, int] = {}
        self._version: int | None = None
        self._latest: FleetPicture | None = None
        self._expires_mono = 0.0

    def get(self) -> FleetPicture:
        with self._lock:
            if self._latest is None or time.monotonic() >= self._expires_mono:
                began_mono = time.monotonic()
                self._latest = self._read()
                took_s = time.monotonic() - began_mono
                self._expires_mono = time.monotonic() + max(MAX_AGE_S, _REST * took_s)
            return self._latest

    def _read(self) -> FleetPicture:
        services = self._services
        self._follow_inventory()
        failing = self._failing()
        outages = list(site_windows.dark(services.redis, services.keys).values())
        dark = {outage.site: outage.since_ms for outage in outages}
        sizes = self._site_sizes
        known = failing or []
        return FleetPicture(
            causes=failing_causes.group(known),
            sites=failing_causes.sites(sizes, known, dark, self._held(outages)),
            failing_devices=len({each.device_id for each in known}),
            devices=sum(sizes.values()),
            is_complete=failing is not None,
            as_of_ms=services.board.now_ms(),
        )

    def _held(self, outages: Sequence[Outage]) -> dict[str, int]:
        """The targets that wait for each dark site."""
        services = self._services
        pipe = services.redis.pipeline(transaction=False)
        for outage in outages:
            pipe.zcount(services.keys.held, outage.number, outage.number)
        with store_errors(services.redis):
            numbers = pipe.execute()
        return {outage.site: int(each) for outage, each in zip(outages, numbers, strict=True)}

    def _follow_inventory(self) -> None:
        """Forget where targets are after a change of the inventory."""
        with sql.single_read(self._services.engine) as conn:
            version = inventory_feed.version_in(conn)
        if version != self._version:
            self._places.clear()
            self._site_sizes = fleet_places.site_sizes(self._services.engine)
            self._version = version

    def _failing(self) -> list[FailingTarget] | None:
        """The failing targets; None if they are too many to be looked at."""
        unwell = UnwellTargets(self._services.board)
        ids = unwell.ids(MOST)
        if ids is None:
            return None
        texts = unwell.statuses(ids)
        codes = {
            target_id: target_condition.mark_and_code(text)[1]
            for target_id, text in texts.items()
            if target_status.is_failing(text)
        }
        self._learn(codes)
        return [
            FailingTarget(place.device_id, place.site, codes[target_id])
            for target_id, place in self._known(codes)
        ]

    def _learn(self, ids: Collection[int]) -> None:
        missing = [each for each in ids if each not in self._places]
        if missing:
            self._places |= fleet_places.of_targets(self._services.engine, missing)

    def _known(self, ids: Collection[int]) -> list[tuple[int, Place]]:
        return [(each, self._places[each]) for each in ids if each in self._places]


_lock = threading.Lock()
_caches: weakref.WeakKeyDictionary[Services, _PictureCache] = weakref.WeakKeyDictionary()
