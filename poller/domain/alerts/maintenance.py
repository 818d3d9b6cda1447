"""Maintenance: until when nobody is told of what matches. Monitoring goes on, and ends are told.

A silence is a maintenance of one alert. Each has an end: nothing is left untold for ever.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from poller.domain.inventory import target_filter
from poller.domain.inventory.filter_match import FilterMatch, TargetFacts
from poller.domain.jobs import wall_clock

_MINUTE_MS = 60_000


@dataclass(frozen=True, slots=True)
class Window:
    """A span in which a maintenance holds, in UTC milliseconds. The end is not part of it."""

    since_ms: int
    until_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Maintenance:
    """A checked maintenance. Instants are UTC milliseconds; `id` is 0 until it is stored.

    What it is about: the devices of a filter, the alerts of a rule, or one alert by its identity;
    of several of these, all must fit. With `cron` it recurs in its time zone, for `length_ms` each
    time, from `starts_ms` until `ends_ms`.
    """

    id: int = 0
    filter: str = ""
    rule: str = ""
    alert_identity: str = ""
    reason: str
    starts_ms: int
    ends_ms: int
    cron: str = ""
    time_zone: str = "UTC"
    length_ms: int = 0
    created_by: str = ""
    created_ms: int = 0

    @property
    def name(self) -> str:
        """The `suppressed_by` of an alert that this maintenance suppresses."""
        return f"maintenance:{self.id}"

    @property
    def recurs(self) -> bool:
        return bool(self.cron)

    def window(self, now_ms: int) -> Window | None:
        """Return the window that holds at an instant; None outside of all."""
        if not self.starts_ms <= now_ms < self.ends_ms:
            return None
        if not self.recurs:
            return Window(self.starts_ms, self.ends_ms)
        # A cron expression names whole minutes, so all instants of a minute have one answer.
        minute_ms = now_ms - now_ms % _MINUTE_MS
        began_ms = _latest_ms(self.cron, self.time_zone, minute_ms)
        until_ms = min(began_ms + self.length_ms, self.ends_ms)
        if began_ms < self.starts_ms or now_ms >= until_ms:
            return None
        return Window(began_ms, until_ms)

    def next_window(self, now_ms: int) -> Window | None:
        """Return the first window that begins after an instant; None if there is no more."""
        if not self.recurs:
            begins_later = now_ms < self.starts_ms < self.ends_ms
            return Window(self.starts_ms, self.ends_ms) if begins_later else None
        after_ms = max(now_ms, self.starts_ms - 1)
        try:
            begins_ms = next(wall_clock.instants(self.cron, self.time_zone, after_ms))
        except StopIteration:
            return None
        if begins_ms >= self.ends_ms:
            return None
        return Window(begins_ms, min(begins_ms + self.length_ms, self.ends_ms))

    def covers(self, facts: TargetFacts | None, rule: str, identity: str) -> bool:
        """Whether it is about an alert, given its rule, its identity and what it is about.

        `facts` are those of the alert's target, or of its device or its site (`DeviceFacts`); None
        is the platform, which no filter matches.
        """
        if self.rule not in ("", rule):
            return False
        if self.alert_identity not in ("", identity):
            return False
        if not self.filter:
            return bool(self.rule or self.alert_identity)
        return facts is not None and _match(self.filter).accepts(facts)


class Covered(NamedTuple):
    """An alert as a maintenance looks at it; see `Maintenance.covers`."""

    identity: str
    rule: str
    facts: TargetFacts | None


def active(
    maintenances: Iterable[Maintenance], alerts: Sequence[Covered], now_ms: int
) -> dict[str, Maintenance]:
    """Return the maintenance that suppresses each alert now, the one that ends last, by identity.

    `maintenances` are those of `maintenance_rows.current`. The answer does not depend on their
    order, so the reason of a suppressed alert does not change from one look to the next.
    """
    holding = []
    for each in maintenances:
        window = each.window(now_ms)
        if window is not None:
            holding.append((window.until_ms, each.id, each))
    found: dict[str, Maintenance] = {}
    for _, _, each in sorted(holding, key=lambda held: held[:2]):  # the last one stays
        for alert in alerts:
            if each.covers(alert.facts, alert.rule, alert.identity):
                found[alert.identity] = each
    return found


def next_change_ms(maintenances: Sequence[Maintenance], now_ms: int) -> int | None:
    """Return the next instant at which one of them begins or ends; None if none does."""
    instants: list[int] = []
    for each in maintenances:
        window = each.window(now_ms)
        if window is not None:
            instants.append(window.until_ms)
        following = each.next_window(now_ms)
        if following is not None:
            instants.append(following.since_ms)
    return min(instants, default=None)


@functools.lru_cache(maxsize=1024)
def _latest_ms(cron: str, time_zone: str, minute_ms: int) -> int:
    """Return the newest beginning that is not after an instant; 0 if there is none."""
    try:
        return wall_clock.latest_ms(cron, time_zone, minute_ms)
    except ValueError:
        return 0


@functools.lru_cache(maxsize=256)
def _match(text: str) -> FilterMatch:
    return FilterMatch(target_filter.parse(text))
