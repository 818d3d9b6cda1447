"""The form of a menu: its rows and the functions that return the properties of a row.

A property is `fixed` (the same on all routers of a chassis) or `live` (of a router at an instant).
A value of None means that the row does not have the property. The menus are in
`poller.sim.routeros.menus`.
"""

from __future__ import annotations

import datetime
import math
import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from poller.sim.device_traffic import UPTIME
from poller.sim.hardware_model import Chassis, Feature

BITS_64 = (1 << 64) - 1


class Scene(NamedTuple):
    """A router at one instant."""

    name: str
    mac: int
    chassis: Chassis
    waves: tuple[float, ...]
    now: float = 0.0

    @property
    def uptime(self) -> float:
        return self.waves[UPTIME]

    @property
    def load(self) -> int:
        """The CPU load in percent: an oscillation of ten minutes."""
        return int(18 + 12 * math.sin(self.uptime / 95 + self.mac % 7))


Fixed = Callable[[Any], str | None]
Live = Callable[[Scene, Any], str | None]
Condition = Callable[[Chassis], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A command such as `monitor`: it reports on items of a menu until it is cancelled, or once."""

    live: Mapping[str, Live]
    fixed: Mapping[str, Fixed] = field(default_factory=dict)
    items: str = "numbers"  # the argument that names the items


def _everywhere(chassis: Chassis) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """A menu. `where` chooses the routers that have it, `present` the rows that exist now."""

    path: str
    rows: Callable[[Chassis], Sequence[Any]]
    fixed: Mapping[str, Fixed] = field(default_factory=dict)
    live: Mapping[str, Live] = field(default_factory=dict)
    where: Condition = _everywhere
    present: Callable[[Scene, Any], bool] | None = None
    stats: frozenset[str] = frozenset()  # shown with =stats= or when named
    #: Filters of `print`, such as =active=.
    flags: Mapping[str, Callable[[Scene, Any], bool]] = field(default_factory=dict)
    watches: Mapping[str, Watch] = field(default_factory=dict)
    #: The properties of a row that a client can add, and whether each is required.
    accepts: Mapping[str, bool] = field(default_factory=dict)

    def value(self, scene: Scene, row: Any, name: str) -> str | None:
        if name in self.fixed:
            return self.fixed[name](row)
        return self.live[name](scene, row) if name in self.live else None


# Conditions on routers.


def since(*version: int) -> Condition:
    return lambda chassis: chassis.version >= version


def before(*version: int) -> Condition:
    return lambda chassis: chassis.version < version


def having(feature: Feature, *version: int) -> Condition:
    """Return a condition for routers with the feature, of this version or newer."""
    return lambda chassis: feature in chassis.model.features and chassis.version >= version


# Rows.


def once(chassis: Chassis) -> Sequence[Any]:
    """Return the single row of a menu about the router itself."""
    return (chassis,)


def dice(chassis: Chassis, menu: str) -> random.Random:
    """Return the random numbers of a chassis and a menu, the same in every run."""
    seed = f"{chassis.model.name}/{chassis.software}/{menu}"
    return random.Random(seed)  # noqa: S311  plausible numbers, not secrets


# Values.


def text(value: str) -> Fixed:
    return lambda row: value


def flag(value: bool) -> str:
    return "true" if value else "false"


def number(row: Any) -> str:
    """Return the `.id` of a row that has a number."""
    return f"*{row.number:X}"


def counted(scene: Scene, rate: float, wave: int = 0) -> str:
    """Return a counter that grows by `rate` per second, varied by the router's activity."""
    return str(int(rate * scene.waves[wave & 3]) & BITS_64)


def swing(scene: Scene, usual: float, share: float, seconds: float, phase: float = 0.0) -> float:
    """Return a value that oscillates around `usual` by a share, with a period of `seconds`."""
    return usual * (1 + share * math.sin(math.tau * scene.now / seconds + phase))


def since_boot(scene: Scene, share: float) -> float:
    """Return the seconds since an event at this share of the first hour after boot."""
    return scene.uptime - min(scene.uptime, 3600.0) * share


def mac(address: int) -> str:
    return (address & 0xFFFF_FFFF_FFFF).to_bytes(6, "big").hex(":").upper()


def uptime(seconds: float) -> str:
    """Format a duration as RouterOS does: 1w2d3h4m5s, without the parts that are zero."""
    left, written = int(seconds), ""
    for size, unit in ((604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        written += f"{count}{unit}" if count else ""
    return written or "0s"


def short(seconds: float) -> str:
    """Format a duration with its fractions: 1s20ms300us."""
    whole, micro = divmod(round(seconds * 1e6), 1_000_000)
    written = uptime(whole) if whole else ""
    for size, unit in ((1000, "ms"), (1, "us")):
        count, micro = divmod(micro, size)
        written += f"{count}{unit}" if count else ""
    return written or "0s"


def moment(at: float, version: tuple[int, ...]) -> str:
    """Format a date as version 7 does, or as older versions do: jan/02/2026 03:04:05."""
    when = datetime.datetime.fromtimestamp(int(at), datetime.UTC)
    if version >= (7, 10):
        return f"{when:%Y-%m-%d %H:%M:%S}"
    return f"{_MONTHS[when.month - 1]}/{when:%d/%Y %H:%M:%S}"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
