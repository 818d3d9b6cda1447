"""Data about a router that a worker caches between polls.

It holds the router's series, the menus the router lacks, and the time and result of each family's
last read. Instants are those of the event loop's clock. The cache may be lost at any time; the
next poll then reads more.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors import api
from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families.family import (
    DHCP_ADDRESS,
    DHCP_NAME,
    Family,
    Menu,
    Row,
    Rows,
)
from poller.collectors.routeros.row_readings import SeriesCache
from poller.domain.inventory import duration

#: A menu that the router lacks is tried again after this time: a package may be installed.
FORGET_S = 6 * 3600.0
#: Share of its interval by which a family may be read early: polls are not exactly on time.
EARLY = 0.1
#: A family that ended the connection twice in a row pauses. Each further time doubles the pause.
PAUSE_S = 60.0
LONGEST_PAUSE_S = 3600.0
_MAX_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class FamilyFailure:
    """Why the last read of a family failed, completely or in part."""

    failures: tuple[api.PartFailed, ...]
    cuts: int = 0  # times in a row that reading the family ended the connection
    unlucky: bool = False  # other families used up the time: this one comes first next time

    @property
    def ended_connection(self) -> bool:
        return self.cuts > 0 or self.unlucky

    @property
    def pause_s(self) -> float:
        if self.cuts < 2:
            return 0.0
        doublings = min(self.cuts - 2, _MAX_DOUBLINGS)
        return min(LONGEST_PAUSE_S, PAUSE_S * (1 << doublings))

    def while_paused(self, left_s: float) -> Sequence[api.PartFailed]:
        """Return the failures for a poll that did not read the family."""
        if not self.pause_s:
            return self.failures
        pause = duration.rounded_text(round(left_s) * 1000)
        addition = f"{self.cuts} times in a row, and not asked again for {pause}"
        return [
            api.PartFailed(each.part, _extended(each.error, addition)) for each in self.failures
        ]


def _extended(error: api.DeviceError, addition: str) -> api.DeviceError:
    return type(error)(f"{error.message}, {addition}", error.cause, error.hint)


def _bare(error: api.DeviceError) -> api.DeviceError:
    """Copy an error without the frames it passed through: they would keep the rows of a reply."""
    return type(error)(error.message, error.cause, error.hint)


@dataclass(slots=True)
class DhcpNames:
    """Host names and addresses of the DHCP leases of the last read, by MAC and by IP address."""

    names: dict[str, str] = field(default_factory=dict)
    addresses: dict[str, str] = field(default_factory=dict)

    def replace(self, leases: Rows) -> None:
        self.names = {}
        self.addresses = {}
        for row in leases:
            mac = row.get("mac-address", "")
            address = row.get("address", "")
            self.names[mac] = self.names[address] = row.get("host-name") or mac
            self.addresses[mac] = address

    def add_to(self, rows: Rows) -> Rows:
        """Return the rows with `dhcp-name` and `dhcp-address` of their lease."""
        if not self.names:
            return rows
        return [{**row, **self._lease_of(row)} for row in rows]

    def _lease_of(self, row: Row) -> dict[str, str]:
        host = row.get("mac-address") or row.get("src-address", "")
        if host not in self.names:
            return {}
        return {DHCP_NAME: self.names[host], DHCP_ADDRESS: self.addresses.get(host, host)}


@dataclass(slots=True)
class RouterMemory:
    series: SeriesCache = field(default_factory=SeriesCache)
    missing: dict[str, float] = field(default_factory=dict)  # command to the instant of a retry
    attempted_at: dict[str, float] = field(default_factory=dict)  # by family
    read: set[str] = field(default_factory=set)  # families read at least once
    failures: dict[str, FamilyFailure] = field(default_factory=dict)  # by family
    dhcp: DhcpNames = field(default_factory=DhcpNames)
    router: tuple[str, str] | None = None  # version and board
    up_s: float = 0.0

    def due(
        self, families: Iterable[Family], every_s: Mapping[str, float], now: float
    ) -> list[Family]:
        """Return the families that a poll reads now, in their order.

        Families that the last poll did not reach come first, those that ended the connection
        come last. A failing family pauses only while other families succeed.
        """
        families = list(families)
        may_pause = self.any_healthy(families)
        due = []
        for family in families:
            interval_s = every_s.get(family.name, family.every_s)
            if self._is_due(family, interval_s, now, may_pause):
                due.append(family)
        return sorted(due, key=self._read_order)

    def _is_due(self, family: Family, interval_s: float, now: float, may_pause: bool) -> bool:
        last = self.attempted_at.get(family.name)
        if last is None:
            return True
        failure = self.failures.get(family.name)
        if failure is not None and failure.ended_connection:
            interval_s = failure.pause_s if may_pause else 0.0
        return now - last >= interval_s * (1 - EARLY) and self.has(family, now)

    def _read_order(self, family: Family) -> tuple[int, float]:
        failure = self.failures.get(family.name)
        cuts = 0
        if failure is not None:
            cuts = -1 if failure.unlucky else failure.cuts
        return cuts, self.attempted_at.get(family.name, -math.inf)

    def record_read(self, family: Family, refused: Iterable[api.PartFailed], now: float) -> None:
        """Record a read that ended in order, and the menus that the router refused."""
        self.attempted_at[family.name] = now
        failures = tuple(api.PartFailed(each.part, _bare(each.error)) for each in refused)
        if failures:
            self.failures[family.name] = FamilyFailure(failures)
        else:
            self.failures.pop(family.name, None)
            self.read.add(family.name)

    def record_cut(
        self, family: Family, error: api.DeviceError, now: float, *, unlucky: bool
    ) -> None:
        """Record a read that ended the connection."""
        self.attempted_at[family.name] = now
        before = self.failures.get(family.name)
        cuts = before.cuts if before else 0
        unlucky = unlucky and not cuts  # a family that failed before is blamed again
        if not unlucky:
            cuts += 1
        failure = api.PartFailed(family.name, _bare(error))
        self.failures[family.name] = FamilyFailure((failure,), cuts, unlucky)

    def standing_failures(self, families: Iterable[Family], now: float) -> list[api.PartFailed]:
        """Return the failures of families that this poll did not read."""
        failures: list[api.PartFailed] = []
        for family in families:
            failure = self.failures.get(family.name)
            if failure is not None:
                retry_at = self.attempted_at[family.name] + failure.pause_s
                failures += failure.while_paused(max(0.0, retry_at - now))
        return failures

    def any_healthy(self, families: Iterable[Family]) -> bool:
        """Return whether the last read of any of these families succeeded."""
        for family in families:
            if family.name in self.read and family.name not in self.failures:
                return True
        return False

    def lacks(self, menu: Menu, now: float) -> bool:
        """Return whether the router recently reported that it has no such menu."""
        return any(self.missing.get(command, now) > now for command in menu.commands())

    def record_missing(self, command: str, now: float) -> None:
        self.missing[command] = now + FORGET_S

    def record_resource(self, resource: Row) -> None:
        """Clear the cache after an update or a reboot, which may bring other menus and leases."""
        router = (resource.get("version", ""), resource.get("board-name", ""))
        up_s = value_parser.seconds(resource.get("uptime", "")) or 0.0
        if self.router is not None and (router != self.router or up_s < self.up_s):
            self.missing.clear()
            self.failures.clear()
            self.dhcp = DhcpNames()
        self.router = router
        self.up_s = up_s

    def has(self, family: Family, now: float) -> bool:
        """Return whether the router has any menu of a family, as far as is known."""
        return not all(self.lacks(menu, now) for menu in family.menus)

    def presence(self, families: Iterable[Family], now: float) -> dict[str, bool]:
        """Return, for each family that was read at least once, whether the router has it."""
        return {
            family.name: self.has(family, now) for family in families if family.name in self.read
        }
