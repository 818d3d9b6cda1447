"""Watches the sites: one that goes dark is asked by a few canaries only, and comes back spread out.

Runs beside the ticks, since it asks SQL which targets a site has. A database that is away changes nothing: the
targets' own breakers open then, one by one.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Mapping
from dataclasses import replace

from poller import errors, event_publisher
from poller.beat.leadership import Leader
from poller.bootstrap import Services
from poller.db.inventory import sites
from poller.domain.failures import site_outage
from poller.domain.failures.site_outage import Outage, Window
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.observability import logs
from poller.settings import policies
from poller.state.board.board_values import NotLeader, Place
from poller.state.cluster import site_windows

log = logs.get(__name__)

LOOK_EVERY_S = 2.0


class SiteWatch:
    def __init__(
        self,
        services: Services,
        leader: Leader,
        stopping: threading.Event,
        note: event_publisher.Note = event_publisher.only_log,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._services = services
        self._board = services.board
        self._leader = leader
        self._stopping = stopping
        self._note = note
        self._limits = policies.site_limits(services.settings)
        self._chance = chance
        self._known: dict[str, dict[int, int]] = {}  # dark sites: their targets, as SQL had them
        self._thread = threading.Thread(target=self._watch, name="sites", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def _watch(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            try:
                if self._leader.leads:
                    self.look(self._board.now_ms())
            except NotLeader:
                continue
            except errors.StoreError as error:
                log.warning("sites_not_watched", error=str(error))
            except Exception:
                log.exception("site_watch_broke")

    def look(self, now_ms: int) -> None:
        """One round: open what went dark, keep its targets aside, ask, and bring back what answers."""
        client, keys = self._services.redis, self._services.keys
        windows = site_windows.windows(client, keys, now_ms)
        dark = site_windows.dark(client, keys)
        for outage in dark.values():
            self._attend(outage, now_ms)
        for name, seen in windows.items():
            if name not in dark and (window := site_outage.first_dark(seen, self._limits)):
                self._open(name, window, now_ms)
        self._release_forgotten(
            {outage.number for outage in site_windows.dark(client, keys).values()}, now_ms
        )

    def _release_forgotten(self, open_sites: set[int], now_ms: int) -> None:
        """Whoever waits for an outage that nobody knows of any more."""
        rows = [
            (i, now_ms) for i, number in self._board.all_held().items() if number not in open_sites
        ]
        if rows:
            self._board.release(self._leader.token, rows)

    def _open(self, name: str, window: Window, now_ms: int) -> None:
        number, _ = sites.targets_of(self._services.engine, name)
        if not number:
            return  # removed meanwhile
        outage = Outage(name, number, now_ms)
        site_windows.store(self._services.redis, self._services.keys, outage)
        said = f"site {name} is dark: {window.dark} of {window.polls} polls found nobody in {window.seconds} s"
        data = {"site": name, "polls": window.polls, "dark": window.dark}
        self._note(Event(now_ms, Kind.SITE_OPENED, said, data=data))
        self._attend(outage, now_ms)

    def _attend(self, outage: Outage, now_ms: int) -> None:
        held = self._board.held(outage.number)
        ids = self._targets(outage.site, held)
        strangers = held - ids.keys()
        if strangers:  # moved to another site, or removed
            self._board.release(
                self._leader.token, [(target_id, now_ms) for target_id in strangers]
            )
        if not ids or site_outage.has_recovered(
            outage, self._board.statuses(outage.canaries).values()
        ):
            self._close(outage, ids, now_ms)
            return
        asking = site_outage.is_probe_due(outage, now_ms, self._limits)
        kept = () if asking else outage.canaries  # these are on their way
        self._board.withhold(self._leader.token, outage.number, ids.keys() - held - set(kept))
        if asking:
            self._ask(outage, list(ids), now_ms)

    def _targets(self, name: str, held: set[int]) -> dict[int, int]:
        """With their intervals. While SQL is away: as they were, or who is held. It must not keep a site dark."""
        try:
            _, self._known[name] = sites.targets_of(self._services.engine, name)
        except errors.StoreError:
            self._known.setdefault(name, dict.fromkeys(held, slots.RESUME_WITHIN_MS))
            if not self._known[name]:
                raise
        return self._known[name]

    def _ask(self, outage: Outage, ids: list[int], now_ms: int) -> None:
        chances = [self._chance() for _ in range(self._limits.canaries)]
        chosen = site_outage.next_canaries(ids, chances, self._limits)
        site_windows.store(
            self._services.redis,
            self._services.keys,
            replace(outage, asked_ms=now_ms, canaries=chosen),
        )
        self._board.release(
            self._leader.token, [(target_id, now_ms) for target_id in chosen], Place.URGENT
        )

    def _close(self, outage: Outage, ids: Mapping[int, int], now_ms: int) -> None:
        """Everything that waits comes back within its interval, a minute at most, each target at its own instant."""
        held = self._board.held(outage.number)
        rows = [
            (i, site_outage.return_ms(i, ids.get(i, slots.RESUME_WITHIN_MS), now_ms)) for i in held
        ]
        self._board.release(self._leader.token, rows)
        statuses = self._board.statuses(outage.canaries)
        unheard = [
            i for i in outage.canaries if i in statuses and statuses[i].ok_ms < outage.asked_ms
        ]
        if unheard:
            self._board.demand(
                unheard
            )  # asked a moment too early: else it would wait for its own breaker
        site_windows.clear_windows(self._services.redis, self._services.keys, outage.site, now_ms)
        site_windows.forget(self._services.redis, self._services.keys, outage.site)
        self._known.pop(outage.site, None)
        seconds = (now_ms - outage.since_ms) // 1000
        said = f"site {outage.site} answers again after {duration.rounded_text(seconds * 1000)}; {len(held)} targets come back"
        data = {"site": outage.site, "targets": len(held), "seconds": seconds}
        self._note(Event(now_ms, Kind.SITE_RECOVERED, said, data=data))
