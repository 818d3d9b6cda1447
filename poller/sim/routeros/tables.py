"""What does a router show? Every printable menu is a table: a name per column and how to find its value.

To add a menu, add a `Table` to `TABLES`; to add a property, add a line. A value of None means that the row
does not have the property.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from poller.sim.hardware import Chassis, Kind, Port, Rates
from poller.sim.life import UPTIME

BITS_64 = (1 << 64) - 1


class Scene(NamedTuple):
    """A router at one instant."""

    name: str
    mac: int
    chassis: Chassis
    waves: tuple[float, ...]

    @property
    def version(self) -> tuple[int, ...]:
        return tuple(int(part) for part in self.chassis.software.split("."))

    @property
    def load(self) -> int:
        """Processor load in percent: a slow swing over ten minutes."""
        return int(18 + 12 * math.sin(self.waves[UPTIME] / 95 + self.mac % 7))


Value = Callable[[Scene, Any], str | None]


@dataclass(frozen=True, slots=True)
class Table:
    rows: Callable[[Scene], Sequence[Any]]
    columns: Mapping[str, Value]


def uptime(seconds: float) -> str:
    """RouterOS's way to write a duration: 1w2d3h4m5s, without the parts that are zero."""
    left, text = int(seconds), ""
    for size, unit in ((604_800, "w"), (86_400, "d"), (3600, "h"), (60, "m"), (1, "s")):
        count, left = divmod(left, size)
        text += f"{count}{unit}" if count else ""
    return text or "0s"


def _once(scene: Scene) -> Sequence[Any]:
    return (None,)


def _nothing(scene: Scene) -> Sequence[Any]:
    return ()


def _always(text: str) -> Value:
    return lambda scene, row: text


def _flag(value: bool) -> str:
    return "true" if value else "false"


def _counter(rate: Callable[[Rates], float]) -> Value:
    return lambda scene, port: str(int(rate(port.rates) * scene.waves[port.wave]) & BITS_64)


def _mac(scene: Scene, port: Port) -> str:
    return (scene.mac + port.index).to_bytes(6, "big").hex(":").upper()


def _health(scene: Scene) -> Sequence[Any]:
    """Version 7 has a row per sensor; version 6 has one row with a property per sensor."""
    sensors = scene.chassis.model.sensors
    return tuple(enumerate(sensors)) if scene.version >= (7,) else ((0, None),)[: len(sensors)]


def _sensor(scene: Scene, name: str, usual: float) -> str:
    drift = math.sin(scene.waves[UPTIME] / 600 + len(name)) * usual * 0.03
    return f"{usual + drift:.1f}" if usual < 100 else str(int(usual + drift))


def _v7_sensor(pick: Callable[[Scene, int, tuple[str, str, float]], str]) -> Value:
    return lambda scene, row: pick(scene, row[0], row[1]) if row[1] else None


def _v6_sensor(name: str) -> Value:
    def value(scene: Scene, row: Any) -> str | None:
        if row[1]:
            return None
        return next((_sensor(scene, n, usual) for n, _, usual in scene.chassis.model.sensors if n == name), None)

    return value


RESOURCE = Table(
    _once,
    {
        "uptime": lambda scene, _: uptime(scene.waves[UPTIME]),
        "version": lambda scene, _: f"{scene.chassis.software} (stable)",
        "build-time": _always("2025-10-21 09:15:32"),
        "free-memory": lambda scene, _: str(scene.chassis.model.memory * (70 - scene.load // 4) // 100),
        "total-memory": lambda scene, _: str(scene.chassis.model.memory),
        "cpu": lambda scene, _: scene.chassis.model.architecture.upper(),
        "cpu-count": lambda scene, _: str(scene.chassis.model.cpu_count),
        "cpu-frequency": lambda scene, _: str(scene.chassis.model.cpu_mhz),
        "cpu-load": lambda scene, _: str(scene.load),
        "free-hdd-space": lambda scene, _: str(scene.chassis.model.storage * 6 // 10),
        "total-hdd-space": lambda scene, _: str(scene.chassis.model.storage),
        "write-sect-since-reboot": lambda scene, _: str(int(scene.waves[UPTIME] / 7)),
        "write-sect-total": lambda scene, _: str(int(scene.waves[UPTIME] / 7) + 40_000),
        "bad-blocks": _always("0"),
        "architecture-name": lambda scene, _: scene.chassis.model.architecture,
        "board-name": lambda scene, _: scene.chassis.model.board,
        "platform": _always("MikroTik"),
    },
)

IDENTITY = Table(_once, {"name": lambda scene, _: scene.name})

ROUTERBOARD = Table(
    _once,
    {
        "routerboard": _always("true"),
        "board-name": lambda scene, _: scene.chassis.model.board,
        "model": lambda scene, _: scene.chassis.model.board,
        "serial-number": lambda scene, _: f"HE{scene.mac >> 8 & 0xFFFF_FFFF:08X}",
        "firmware-type": lambda scene, _: scene.chassis.model.architecture,
        "factory-firmware": _always("6.47.9"),
        "current-firmware": lambda scene, _: scene.chassis.software,
        "upgrade-firmware": lambda scene, _: scene.chassis.software,
    },
)

HEALTH = Table(
    _health,
    {
        ".id": _v7_sensor(lambda scene, number, sensor: f"*{number + 13:X}"),
        "name": _v7_sensor(lambda scene, number, sensor: sensor[0]),
        "value": _v7_sensor(lambda scene, number, sensor: _sensor(scene, sensor[0], sensor[2])),
        "type": _v7_sensor(lambda scene, number, sensor: sensor[1]),
        "voltage": _v6_sensor("voltage"),
        "temperature": _v6_sensor("temperature"),
        "cpu-temperature": _v6_sensor("cpu-temperature"),
        "fan1-speed": _v6_sensor("fan1-speed"),
    },
)

INTERFACE = Table(
    lambda scene: scene.chassis.ports,
    {
        ".id": lambda scene, port: f"*{port.index:X}",
        "name": lambda scene, port: port.name,
        "default-name": lambda scene, port: port.name if port.kind is Kind.ETHERNET else None,
        "type": lambda scene, port: port.kind.value,
        "mtu": lambda scene, port: str(port.mtu),
        "actual-mtu": lambda scene, port: str(port.mtu),
        "l2mtu": lambda scene, port: "1514" if port.kind is Kind.ETHERNET else None,
        "mac-address": _mac,
        "link-downs": lambda scene, port: str(port.link_downs),
        "rx-byte": _counter(lambda rates: rates.in_octets),
        "tx-byte": _counter(lambda rates: rates.out_octets),
        "rx-packet": _counter(lambda rates: rates.in_unicast + rates.in_multicast + rates.in_broadcast),
        "tx-packet": _counter(lambda rates: rates.out_unicast + rates.out_multicast + rates.out_broadcast),
        "rx-drop": _counter(lambda rates: rates.in_drops),
        "tx-drop": _counter(lambda rates: rates.out_drops),
        "tx-queue-drop": _counter(lambda rates: rates.out_drops),
        "rx-error": _counter(lambda rates: rates.in_errors),
        "tx-error": _counter(lambda rates: rates.out_errors),
        "running": lambda scene, port: _flag(port.up),
        "disabled": lambda scene, port: _flag(not port.enabled),
        "comment": lambda scene, port: port.alias or None,
    },
)

TABLES: Mapping[str, Table] = {
    "/system/resource": RESOURCE,
    "/system/identity": IDENTITY,
    "/system/routerboard": ROUTERBOARD,
    "/system/health": HEALTH,
    "/interface": INTERFACE,
    "/ip/dhcp-server/lease": Table(_nothing, {}),
    "/interface/wireless/registration-table": Table(_nothing, {}),
}
