"""Watches the sites: a dark site is polled by a few canaries only, and comes back spread out.

Runs in a thread, since it reads the targets of a site from SQL. Without a database no new outage
starts, and the breakers of the targets open one by one.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace

from poller import errors
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.inventory import sites
from poller.domain.failures import site_outage
from poller.domain.failures.site_outage import Outage, Window
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.event_publisher import EventLog, LogOnly
from poller.observability import logs
from poller.settings import policies
from poller.state.board.board_values import NotLeader, Place
from poller.state.cluster import site_windows

log = logs.get(__name__)

CHECK_EVERY_S = 2.0


class SiteOutages:
    """The leader's watch over dark sites."""

    def __init__(
        self,
        services: Services,
        leader: Leader,
        stopping: threading.Event,
        events: EventLog | None = None,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._engine = services.engine
        self._redis = services.redis
        self._keys = services.keys
        self._board = services.board
        self._leader = leader
        self._stopping = stopping
        self._events = events or LogOnly()
        self._limits = policies.site_limits(services.settings)
        self._chance = chance
        #: Dark site -> its targets with their intervals in ms, as last read from SQL.
        self._targets: dict[str, dict[int, int]] = {}
        self._thread = threading.Thread(target=self._run, name="site-outages", daemon=True)

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def _run(self) -> None:
        while not self._stopping.wait(CHECK_EVERY_S):
            try:
                if self._leader.leads:
                    self.check(self._board.now_ms())
            except NotLeader:
                continue
            except errors.StoreError as error:
                log.warning("sites_not_checked", error=str(error))
            except Exception:  # door: the end of this thread; it must not die
                log.exception("site_outages_broke")

    def check(self, now_ms: int) -> None:
        """Probe and end running outages, start new ones. Raises StoreError, NotLeader."""
        windows = site_windows.windows(self._redis, self._keys, now_ms)
        outages = site_windows.dark(self._redis, self._keys)
        for outage in outages.values():
            self._follow(outage, now_ms)

        for site, site_polls in windows.items():
            dark_window = site_outage.first_dark(site_polls, self._limits)
            if dark_window and site not in outages:
                self._begin(site, dark_window, now_ms)
        self._release_orphans(now_ms)

    def _begin(self, site: str, window: Window, now_ms: int) -> None:
        number, _ = sites.targets_of(self._engine, site)
        if not number:
            return  # the site was removed meanwhile
        outage = Outage(site, number, now_ms)
        site_windows.store(self._redis, self._keys, outage)
        event = Event(
            at_ms=now_ms,
            kind=Kind.SITE_OPENED,
            message=f"site {site} is dark: {window.dark} of {window.polls} polls "
            f"found no device in {window.seconds} s",
            data={"site": site, "polls": window.polls, "dark": window.dark},
        )
        self._events.record(event)
        self._follow(outage, now_ms)

    def _follow(self, outage: Outage, now_ms: int) -> None:
        """End an outage that is over; else hold the site's targets and poll canaries when due."""
        held = self._board.held(outage.number)
        targets = self._load_targets(outage.site, held)
        moved_away = held - targets.keys()
        self._release(moved_away, now_ms)

        canaries = self._board.statuses(outage.canaries)
        if not targets or site_outage.has_recovered(outage, canaries.values()):
            self._end(outage, targets, now_ms)
            return

        waiting = targets.keys() - held
        probe_is_due = site_outage.is_probe_due(outage, now_ms, self._limits)
        if not probe_is_due:
            waiting -= set(outage.canaries)  # their polls are under way
        self._board.withhold(self._leader.token, outage.number, waiting)
        if probe_is_due:
            self._probe(outage, list(targets), now_ms)

    def _load_targets(self, site: str, held: set[int]) -> dict[int, int]:
        """Targets of a site with their intervals in ms.

        Without a database: as last read, or the held ones. A missing database must not keep a site
        dark.
        """
        try:
            _, self._targets[site] = sites.targets_of(self._engine, site)
        except errors.StoreError:
            if site not in self._targets:
                self._targets[site] = dict.fromkeys(held, slots.RESUME_WITHIN_MS)
            if not self._targets[site]:
                raise
        return self._targets[site]

    def _probe(self, outage: Outage, target_ids: list[int], now_ms: int) -> None:
        """Choose new canaries and poll them at once."""
        chances = [self._chance() for _ in range(self._limits.canaries)]
        canaries = site_outage.next_canaries(target_ids, chances, self._limits)
        probed = replace(outage, asked_ms=now_ms, canaries=canaries)
        site_windows.store(self._redis, self._keys, probed)
        self._release(canaries, now_ms, Place.URGENT)

    def _end(self, outage: Outage, intervals: Mapping[int, int], now_ms: int) -> None:
        """Return each held target at its own instant, within its interval and a minute."""
        held = self._board.held(outage.number)
        returns = []
        for target_id in held:
            interval_ms = intervals.get(target_id, slots.RESUME_WITHIN_MS)
            at_ms = site_outage.return_ms(target_id, interval_ms, now_ms)
            returns.append((target_id, at_ms))
        self._board.release(self._leader.token, returns)
        self._repeat_failed_probes(outage)

        site_windows.clear_windows(self._redis, self._keys, outage.site, now_ms)
        site_windows.forget(self._redis, self._keys, outage.site)
        self._targets.pop(outage.site, None)

        seconds = (now_ms - outage.since_ms) // 1000
        length = duration.rounded_text(seconds * 1000)
        event = Event(
            at_ms=now_ms,
            kind=Kind.SITE_RECOVERED,
            message=f"site {outage.site} answers again after {length}; "
            f"{len(held)} targets come back",
            data={"site": outage.site, "targets": len(held), "seconds": seconds},
        )
        self._events.record(event)

    def _repeat_failed_probes(self, outage: Outage) -> None:
        """Poll canaries again that failed just before the site came back.

        Otherwise they would wait for their own breakers.
        """
        statuses = self._board.statuses(outage.canaries)
        failed = []
        for target_id, status in statuses.items():
            if status.ok_ms < outage.asked_ms:
                failed.append(target_id)
        if failed:
            self._board.demand(failed)

    def _release_orphans(self, now_ms: int) -> None:
        """Release targets that are held for an outage that Redis has lost."""
        outages = site_windows.dark(self._redis, self._keys)
        numbers = {outage.number for outage in outages.values()}
        orphans = []
        for target_id, number in self._board.all_held().items():
            if number not in numbers:
                orphans.append(target_id)
        self._release(orphans, now_ms)

    def _release(self, target_ids: Iterable[int], at_ms: int, place: Place = Place.DUE) -> None:
        returns = [(target_id, at_ms) for target_id in target_ids]
        if returns:
            self._board.release(self._leader.token, returns, place)
