"""The shape of a menu: which rows it has, and how each property of a row is found.

What a row shows is either `fixed` (made once for all routers of a chassis) or `live` (of a router, at an instant). A
value of None means that the row does not have the property. The menus themselves are in `poller.sim.routeros.menus`.
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
        """Processor load in percent: a slow swing over ten minutes."""
        return int(18 + 12 * math.sin(self.uptime / 95 + self.mac % 7))


Fixed = Callable[[Any], str | None]
Live = Callable[[Scene, Any], str | None]
Condition = Callable[[Chassis], bool]


@dataclass(frozen=True, slots=True, eq=False)
class Watch:
    """A command that reports on items of a menu until it is cancelled: `monitor`, or once, if asked so."""

    live: Mapping[str, Live]
    fixed: Mapping[str, Fixed] = field(default_factory=dict)
    items: str = "numbers"  # the argument that names them


def _everywhere(chassis: Chassis) -> bool:
    return True


@dataclass(frozen=True, slots=True, eq=False)
class Table:
    """`where` says which routers have the menu, `present` which rows are there at the moment."""

    path: str
    rows: Callable[[Chassis], Sequence[Any]]
    fixed: Mapping[str, Fixed] = field(default_factory=dict)
    live: Mapping[str, Live] = field(default_factory=dict)
    where: Condition = _everywhere
    present: Callable[[Scene, Any], bool] | None = None
    stats: frozenset[str] = frozenset()  # shown when asked for with =stats=, or by name
    flags: Mapping[str, Callable[[Scene, Any], bool]] = field(
        default_factory=dict
    )  # print's own: =active=
    watches: Mapping[str, Watch] = field(default_factory=dict)
    accepts: Mapping[str, bool] = field(
        default_factory=dict
    )  # what a client may add a row with: is it required?

    def value(self, scene: Scene, row: Any, name: str) -> str | None:
        if name in self.fixed:
            return self.fixed[name](row)
        return self.live[name](scene, row) if name in self.live else None


# Which routers have a menu.


def since(*version: int) -> Condition:
    return lambda chassis: chassis.version >= version


def before(*version: int) -> Condition:
    return lambda chassis: chassis.version < version


def having(feature: Feature, *version: int) -> Condition:
    """Routers with the feature, of this version or newer."""
    return lambda chassis: feature in chassis.model.features and chassis.version >= version


# Rows.


def once(chassis: Chassis) -> Sequence[Any]:
    """A menu that is one row, about the router itself."""
    return (chassis,)


def dice(chassis: Chassis, menu: str) -> random.Random:
    """The same luck for a chassis and a menu on every machine and in every run."""
    return random.Random(f"{chassis.model.name}/{chassis.software}/{menu}")  # noqa: S311  believable, not secret


# Values.


def text(value: str) -> Fixed:
    return lambda row: value


def flag(value: bool) -> str:
    return "true" if value else "false"


def number(row: Any) -> str:
    """The `.id` of a row that knows its number."""
    return f"*{row.number:X}"


def counted(scene: Scene, rate: float, wave: int = 0) -> str:
    """A counter that grows by `rate` a second, with the router's ups and downs."""
    return str(int(rate * scene.waves[wave & 3]) & BITS_64)


def swing(scene: Scene, usual: float, share: float, seconds: float, phase: float = 0.0) -> float:
    """Around `usual`, up and down by a share of it, once in so many seconds."""
    return usual * (1 + share * math.sin(math.tau * scene.now / seconds + phase))


def since_boot(scene: Scene, share: float) -> float:
    """Seconds since something that happened after this share of the first hour, or of the time since the boot."""
    return scene.uptime - min(scene.uptime, 3600.0) * share


def mac(address: int) -> str:
    return (address & 0xFFFF_FFFF_FFFF).to_bytes(6, "big").hex(":").upper()


def uptime(seconds: float) -> str:
    """RouterOS's way to write a duration: 1w2d3h4m5s, without the parts that are zero."""
    left, written = int(seconds), ""
    for size, unit in ((604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        written += f"{count}{unit}" if count else ""
    return written or "0s"


def short(seconds: float) -> str:
    """A duration with its fractions: 1s20ms300us."""
    whole, micro = divmod(round(seconds * 1e6), 1_000_000)
    written = uptime(whole) if whole else ""
    for size, unit in ((1000, "ms"), (1, "us")):
        count, micro = divmod(micro, size)
        written += f"{count}{unit}" if count else ""
    return written or "0s"


def moment(at: float, version: tuple[int, ...]) -> str:
    """A date as version 7 writes it, or as older ones do: jan/02/2026 03:04:05."""
    when = datetime.datetime.fromtimestamp(int(at), datetime.UTC)
    if version >= (7, 10):
        return f"{when:%Y-%m-%d %H:%M:%S}"
    return f"{_MONTHS[when.month - 1]}/{when:%d/%Y %H:%M:%S}"


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
