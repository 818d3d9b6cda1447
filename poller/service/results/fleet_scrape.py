"""One scrape of the fleet: the last values of its targets, and the age of each."""

from __future__ import annotations

import threading
import time
import weakref
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors
from poller.db.record import stored_readings
from poller.db.record.stored_readings import PackedPoll
from poller.domain.access.actor import Actor
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.inventory.target_filter import TargetFilter
from poller.domain.metrics import counters, outside_labels
from poller.presentation.record import reading_families
from poller.presentation.record.reading_families import Families, Format, LineCache, Lines
from poller.service.results import latest_polls
from poller.service.results.latest_polls import LatestPoll

if TYPE_CHECKING:
    from poller.bootstrap import Services

AGE = "poller_readings_age_seconds"
TARGETS = "poller_readings_targets"
#: Scrapes that wait, are made or are sent: each has a thread of the web process, or a file.
MOST_SCRAPES = 16
FRESHNESS = ("fresh", "old", "never")


@dataclass(frozen=True, slots=True)
class Scrape:
    """A request: who scrapes which targets in which format, and how long the reader waits."""

    actor: Actor
    wanted: TargetFilter
    form: Format
    patience_s: float


class FleetScrapes:
    """The scrapes of a web process. One is made at a time: it takes a processor for a while."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._cache = LineCache()
        self._turn = threading.Lock()
        self._places = threading.BoundedSemaphore(MOST_SCRAPES)

    def families(self, scrape: Scrape) -> Families:
        """Return all lines of a scrape; the caller closes them.

        Raises NotFound for a site or collector that does not exist, NotAllowed, StoreError,
        StoreUnavailable if it takes longer than the reader waits, or if too many wait.
        """
        if not self._places.acquire(blocking=False):
            raise errors.StoreUnavailable(
                f"{MOST_SCRAPES} scrapes of the fleet wait or are read already",
                hint="scrape less often, or larger parts of the fleet at a time",
            )
        try:
            families = self._in_turn(scrape)
        except BaseException:
            self._places.release()
            raise
        # A slow reader keeps the place, and one that has gone frees it, whenever it went.
        weakref.finalize(families, self._places.release)
        return families

    def _in_turn(self, scrape: Scrape) -> Families:
        until_mono = time.monotonic() + scrape.patience_s
        if not self._turn.acquire(timeout=scrape.patience_s):
            raise _too_slow(scrape, "other scrapes of the fleet came first")
        families = Families(scrape.form)
        try:
            self._add_all(families, scrape, until_mono)
        except BaseException:
            families.close()
            raise
        finally:
            self._turn.release()
        return families

    def _add_all(self, families: Families, scrape: Scrape, until_mono: float) -> None:
        _describe(families)
        now_ms = _now_ms(self._services)
        numbers = Counter(dict.fromkeys(FRESHNESS, 0))
        for page in latest_polls.pages(self._services, scrape.actor, scrape.wanted):
            numbers.update(freshness(poll, now_ms) for poll in page)
            self._add_page(families, page, now_ms)
            if time.monotonic() > until_mono:
                raise _too_slow(scrape, f"{numbers.total():,} targets were read in that time")
        for name, number in numbers.items():
            families.add(reading_families.gauge(TARGETS, (("freshness", name),)), [number])

    def _add_page(self, families: Families, page: Sequence[LatestPoll], now_ms: int) -> None:
        """Add the age of each target, and the values that are not too old."""
        for poll in page:
            if poll.stored is not None:
                labels = outside_labels.target_labels(poll.target)
                age_s = max(0, now_ms - poll.stored.at_ms) / 1000
                families.add(reading_families.gauge(AGE, labels), [age_s])

        fresh = [
            (poll.target, poll.stored)
            for poll in page
            if poll.stored is not None and freshness(poll, now_ms) == "fresh"
        ]
        lines = self._lines(fresh)
        for target, stored in fresh:
            if target.id in lines:
                families.add(lines[target.id], stored.values)

    def _lines(self, polls: Sequence[tuple[PollTarget, PackedPoll]]) -> dict[int, Lines]:
        """Return the lines of polls by target. Only those that are not kept need their shapes."""
        now_mono = time.monotonic()
        found: dict[int, Lines] = {}
        missing = []
        for target, stored in polls:
            lines = self._cache.find(target, stored.shape_id, now_mono)
            if lines is None:
                missing.append((target, stored.shape_id))
            else:
                found[target.id] = lines

        ids = {shape_id for _, shape_id in missing}
        shapes = stored_readings.shapes(self._services.engine, ids) if ids else {}
        for target, shape_id in missing:
            if shape_id in shapes:
                series = shapes[shape_id].series
                found[target.id] = self._cache.make(target, shape_id, series, now_mono)
        return found


def freshness(poll: LatestPoll, now_ms: int) -> str:
    """Return whether the values of a poll are shown: `fresh`, `old` or `never` read."""
    if poll.stored is None:
        return "never"
    limit_ms = counters.GAP_INTERVALS * longest_interval_ms(poll.target)
    return "fresh" if now_ms - poll.stored.at_ms <= limit_ms else "old"


def longest_interval_ms(target: PollTarget) -> int:
    """Return the longest time between two polls that the target's interval allows."""
    return max(target.interval_ms, target.max_ms or 0)


def _now_ms(services: Services) -> int:
    """Return the clock of the polls; without Redis, that of this host."""
    try:
        return services.board.now_ms()
    except errors.StoreError:
        return time.time_ns() // 1_000_000


def _describe(families: Families) -> None:
    families.describe(AGE, "Time since the poll that read the target's values.")
    text = "Targets whose values are here (fresh), are too old to be, or were never read."
    families.describe(TARGETS, text)


def _too_slow(scrape: Scrape, cause: str) -> errors.StoreUnavailable:
    return errors.StoreUnavailable(
        f"the scrape took longer than the {scrape.patience_s:g} s that its reader waits",
        cause=cause,
        hint="scrape in parts, such as ?site=ams or ?where=tag:core, or raise scrape_timeout",
    )
