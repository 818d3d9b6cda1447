"""What a worker remembers of a router between polls: its series, what it does not have, when what was read.

Instants are of the event loop's clock. Everything here may be lost at any time: then more is asked once.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from poller.collectors import api
from poller.collectors.routeros import value_parser
from poller.collectors.routeros.dhcp_names import Leases
from poller.collectors.routeros.families.family import Ask, Family, Row
from poller.collectors.routeros.row_readings import Shapes
from poller.domain.inventory import duration

#: A menu that was refused is tried again after this long: somebody may have installed a package.
FORGET_S = 6 * 3600.0
#: Polls do not come at exactly their time: a family is due this share of its interval early.
EARLY = 0.1
#: A family that ended the connection twice in a row has a pause, which doubles with each further time, up to the last.
PAUSE_S, LONGEST_PAUSE_S = 60.0, 3600.0
_DOUBLINGS = 6


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a family could not be read, or not all of it, when it was asked for last."""

    failures: tuple[api.PartFailed, ...]
    cuts: int = 0  # so often in a row its answer, or the want of one, ended the connection
    unlucky: bool = (
        False  # the time was up, but most of it had gone to others: it comes first the next time
    )

    @property
    def was_cut(self) -> bool:
        return self.cuts > 0 or self.unlucky

    @property
    def pause_s(self) -> float:
        return (
            min(LONGEST_PAUSE_S, PAUSE_S * 2 ** min(self.cuts - 2, _DOUBLINGS))
            if self.cuts > 1
            else 0.0
        )

    def told(self, left_s: float) -> Sequence[api.PartFailed]:
        """In a poll that did not ask for it."""
        if not self.pause_s:
            return self.failures
        again = f"{self.cuts} times in a row, and not asked again for {duration.rounded_text(round(left_s) * 1000)}"
        return [api.PartFailed(each.part, _with(each.error, again)) for each in self.failures]


def _with(error: api.DeviceError, more: str) -> api.DeviceError:
    return type(error)(f"{error.message}, {more}", error.cause, error.hint)


@dataclass(slots=True)
class Memory:
    shapes: Shapes = field(default_factory=Shapes)
    refused: dict[str, float] = field(default_factory=dict)  # command to when that is forgotten
    asked_at: dict[str, float] = field(default_factory=dict)  # family to when
    read: set[str] = field(default_factory=set)  # families that were, at least once
    troubles: dict[str, Trouble] = field(default_factory=dict)  # by family; gone when it was read
    leases: Leases = field(default_factory=Leases)
    router: tuple[str, str] | tuple[()] = ()  # its version and board
    up_s: float = 0.0

    def due(
        self, wanted: Iterable[Family], every_s: Mapping[str, float], now: float
    ) -> list[Family]:
        """Which of these families a poll at this moment reads, and in which order, so that each has its turn.

        Who was not reached the last time comes before the others, and who ended the connection last. A pause is for the
        sake of others: without any that are well there is none.
        """
        lengths = [(family, every_s.get(family.name, family.every_s)) for family in wanted]
        paused = self.is_well(family for family, _ in lengths)
        return sorted(
            [family for family, every in lengths if self._is_due(family, every, now, paused)],
            key=self._turn,
        )

    def _is_due(self, family: Family, every_s: float, now: float, paused: bool) -> bool:
        last, trouble = self.asked_at.get(family.name), self.troubles.get(family.name)
        if trouble is not None and trouble.was_cut:
            every_s = trouble.pause_s if paused else 0.0
        return last is None or (now - last >= every_s * (1 - EARLY) and self.has(family, now))

    def _turn(self, family: Family) -> tuple[int, float]:
        trouble = self.troubles.get(family.name)
        cuts = 0 if trouble is None else -1 if trouble.unlucky else trouble.cuts
        return cuts, self.asked_at.get(family.name, -math.inf)

    def note_read(self, family: Family, failures: Iterable[api.PartFailed], now: float) -> None:
        """It was asked for, and this is what the router refused of it."""
        self.asked_at[family.name] = now
        if refused := tuple(failures):
            self.troubles[family.name] = Trouble(refused)
        else:
            self.troubles.pop(family.name, None)
            self.read.add(family.name)

    def note_cut(
        self, family: Family, error: api.DeviceError, now: float, *, unlucky: bool
    ) -> None:
        """It was asked for, and then there was no connection any more."""
        self.asked_at[family.name] = now
        before = self.troubles.get(family.name)
        cuts = before.cuts if before else 0
        unlucky = unlucky and not cuts  # who was guilty before is so again
        self.troubles[family.name] = Trouble(
            (api.PartFailed(family.name, error),), cuts if unlucky else cuts + 1, unlucky
        )

    def remembered(self, families: Iterable[Family], now: float) -> list[api.PartFailed]:
        """What is wrong with these: they were not asked for this time."""
        told: list[api.PartFailed] = []
        for family in families:
            if trouble := self.troubles.get(family.name):
                told += trouble.told(max(0.0, self.asked_at[family.name] + trouble.pause_s - now))
        return told

    def is_well(self, families: Iterable[Family]) -> bool:
        """Was any of these read when it was asked for last?"""
        return any(
            family.name in self.read and family.name not in self.troubles for family in families
        )

    def refuses(self, ask: Ask, now: float) -> bool:
        """Did the router say lately that it has no such menu?"""
        return any(self.refused.get(command, now) > now for command in ask.commands())

    def note_refused(self, command: str, now: float) -> None:
        self.refused[command] = now + FORGET_S

    def note_router(self, resource: Row) -> None:
        """Another version or board has other menus, and packages come with a reboot. Its leases are others, too."""
        router = (resource.get("version", ""), resource.get("board-name", ""))
        up_s = value_parser.seconds(resource.get("uptime", "")) or 0.0
        if self.router and (router != self.router or up_s < self.up_s):
            self.refused.clear()
            self.troubles.clear()
            self.leases = Leases()
        self.router, self.up_s = router, up_s

    def has(self, family: Family, now: float) -> bool:
        """Does the router have any of its menus, as far as we know?"""
        return not all(self.refuses(ask, now) for ask in family.asks)

    def presence(self, wanted: Iterable[Family], now: float) -> dict[str, bool]:
        """Of the families that were asked for at least once: does the router have them?"""
        return {family.name: self.has(family, now) for family in wanted if family.name in self.read}
