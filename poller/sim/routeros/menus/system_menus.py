"""The router itself: /system."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, NamedTuple

from poller.sim.device_traffic import EPOCH
from poller.sim.hardware_model import Chassis, Feature
from poller.sim.routeros.menu_tables import (
    Fixed,
    Live,
    Scene,
    Table,
    before,
    flag,
    moment,
    number,
    once,
    since,
    text,
    uptime,
)

_BUILT = EPOCH - 70 * 86_400
_NEWER = {"7.14.3": "7.18.2"}  # the upgrade firmware where it is newer than the current


def _of_model(name: str) -> Fixed:
    return lambda chassis: str(getattr(chassis.model, name))


RESOURCE = Table(
    "/system/resource",
    once,
    {
        "version": lambda chassis: f"{chassis.software} (stable)",
        "build-time": lambda chassis: moment(_BUILT, chassis.version),
        "total-memory": _of_model("memory"),
        "cpu": lambda chassis: chassis.model.architecture.upper(),
        "cpu-count": _of_model("cpu_count"),
        "cpu-frequency": _of_model("cpu_mhz"),
        "free-hdd-space": lambda chassis: str(chassis.model.storage * 6 // 10),
        "total-hdd-space": _of_model("storage"),
        "bad-blocks": text("0"),
        "architecture-name": _of_model("architecture"),
        "board-name": _of_model("board"),
        "platform": text("MikroTik"),
    },
    {
        "uptime": lambda scene, _: uptime(scene.uptime),
        "free-memory": lambda scene, _: str(
            scene.chassis.model.memory * (70 - scene.load // 4) // 100
        ),
        "cpu-load": lambda scene, _: str(scene.load),
        "write-sect-since-reboot": lambda scene, _: str(int(scene.uptime / 7)),
        "write-sect-total": lambda scene, _: str(int(scene.uptime / 7) + 40_000),
    },
)

IDENTITY = Table("/system/identity", once, live={"name": lambda scene, _: scene.name})

CLOCK = Table(
    "/system/clock",
    once,
    {"time-zone-name": text("UTC"), "gmt-offset": text("+00:00"), "dst-active": text("false")},
    {
        "time": lambda scene, _: moment(scene.now, scene.chassis.version).split()[1],
        "date": lambda scene, _: moment(scene.now, scene.chassis.version).split()[0],
    },
)

ROUTERBOARD = Table(
    "/system/routerboard",
    once,
    {
        "routerboard": text("true"),
        "board-name": _of_model("board"),
        "model": _of_model("board"),
        "firmware-type": _of_model("architecture"),
        "factory-firmware": text("6.47.9"),
        "current-firmware": lambda chassis: chassis.software,
        "upgrade-firmware": lambda chassis: _NEWER.get(chassis.software, chassis.software),
    },
    {"serial-number": lambda scene, _: f"HE{scene.mac >> 8 & 0xFFFF_FFFF:08X}"},
)

UPDATE = Table(
    "/system/package/update",
    once,
    {
        "channel": text("stable"),
        "installed-version": lambda chassis: chassis.software,
        "latest-version": lambda chassis: "7.20.4" if chassis.version >= (7,) else chassis.software,
    },
)


# Health: one row per sensor since version 7; before, one row with a property per sensor.


class Sensor(NamedTuple):
    number: int
    name: str
    unit: str
    usual: float


def _sensors(chassis: Chassis) -> Sequence[Sensor]:
    return [Sensor(n, *sensor) for n, sensor in enumerate(chassis.model.sensors, 13)]


def _sensed(scene: Scene, sensor: Sensor) -> str:
    if sensor.name.endswith("-state"):
        return "ok" if sensor.usual else "fail"
    drift = math.sin(scene.uptime / 600 + len(sensor.name)) * sensor.usual * 0.03
    if sensor.unit == "RPM":
        return str(int(sensor.usual + drift))
    return f"{sensor.usual + drift:.1f}"


HEALTH_7 = Table(
    "/system/health",
    _sensors,
    {".id": number, "name": lambda sensor: sensor.name, "type": lambda sensor: sensor.unit},
    {"value": _sensed},
    where=since(7),
)


def _sensor(name: str) -> Live:
    def value(scene: Scene, chassis: Chassis) -> str | None:
        return next(
            (_sensed(scene, sensor) for sensor in _sensors(chassis) if sensor.name == name), None
        )

    return value


_NAMES = (
    *("voltage", "temperature", "cpu-temperature", "phy-temperature", "switch-temperature"),
    *(
        "board-temperature1",
        "board-temperature2",
        "fan1-speed",
        "fan2-speed",
        "fan3-speed",
        "fan4-speed",
    ),
    *(
        "power-consumption",
        "psu1-voltage",
        "psu2-voltage",
        "psu1-current",
        "psu2-current",
        "psu1-state",
    ),
    *("psu2-state", "poe-out-consumption", "poe-in-voltage", "jack-voltage", "2pin-voltage"),
)
HEALTH_6 = Table(
    "/system/health",
    lambda chassis: once(chassis)[: len(chassis.model.sensors)],
    live={name: _sensor(name) for name in _NAMES},
    where=before(7),
)


# Packages: version 6 has several, version 7 has one and a few extra packages.


class Package(NamedTuple):
    number: int
    name: str
    chassis: Chassis
    disabled: bool = False


_PARTS_6 = (
    "system",
    "security",
    "dhcp",
    "ppp",
    "routing",
    "mpls",
    "ipv6",
    "advanced-tools",
    "hotspot",
)


def _packages(chassis: Chassis) -> Sequence[Package]:
    names = (
        [f"routeros-{chassis.model.architecture}", *_PARTS_6]
        if chassis.version < (7,)
        else ["routeros"]
    )
    features = chassis.model.features
    names += [
        name
        for name in (Feature.WIRELESS, Feature.CONTAINER)
        if name in features and _is_package(name, chassis)
    ]
    return [Package(n, str(name), chassis, name == "hotspot") for n, name in enumerate(names, 1)]


def _is_package(feature: Any, chassis: Chassis) -> bool:
    """Return whether the feature is a package of its own.

    Wireless is part of the main package from 7.0 to 7.12, and containers exist since 7.4.
    """
    if feature == Feature.WIRELESS:
        return not (7,) <= chassis.version < (7, 13)
    return chassis.version >= (7, 4)


PACKAGES = Table(
    "/system/package",
    _packages,
    {
        ".id": number,
        "name": lambda package: package.name,
        "version": lambda package: package.chassis.software,
        "build-time": lambda package: moment(_BUILT, package.chassis.version),
        "scheduled": text(""),
        "disabled": lambda package: flag(package.disabled),
    },
)

TABLES = (RESOURCE, IDENTITY, CLOCK, ROUTERBOARD, UPDATE, HEALTH_7, HEALTH_6, PACKAGES)
