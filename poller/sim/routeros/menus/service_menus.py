"""Other services: netwatch, certificates, containers, kid control, users."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.device_traffic import DAY, EPOCH
from poller.sim.hardware_model import Chassis, Feature
from poller.sim.routeros.menu_tables import (
    Fixed,
    Live,
    Scene,
    Table,
    counted,
    flag,
    having,
    mac,
    moment,
    number,
    short,
    swing,
    text,
    uptime,
)
from poller.sim.routeros.menus.ip_menus import client_mac

# Netwatch: several probe types since version 7.4, only ping before.


class Watched(NamedTuple):
    number: int
    kind: str
    up: bool
    chassis: Chassis

    @property
    def modern(self) -> bool:
        return self.chassis.version >= (7, 4)


_KINDS = ("icmp", "tcp-conn", "http-get", "https-get", "simple", "icmp")


def _watched(chassis: Chassis) -> Sequence[Watched]:
    count = chassis.model.setup.watched
    return [
        Watched(n, _KINDS[(n - 1) % len(_KINDS)], n % 5 != 0, chassis) for n in range(1, count + 1)
    ]


def _took(scene: Scene, row: Watched, share: float) -> str:
    """Return a round-trip time of some milliseconds, in whole microseconds."""
    return short(
        int((2000 + 700 * row.number) * share * (1 + 0.2 * math.sin(scene.now / 55 + row.number)))
        / 1e6
    )


def _kind_only(kinds: tuple[str, ...], value: Callable[[Scene, Watched], str]) -> Live:
    return lambda scene, row: value(scene, row) if row.modern and row.kind in kinds else None


def _modern(value: Callable[[Watched], str | None]) -> Fixed:
    return lambda row: value(row) if row.modern else None


_HTTP = ("http-get", "https-get")
_ICMP = ("icmp",)

NETWATCH = Table(
    "/tool/netwatch",
    _watched,
    {
        ".id": number,
        "name": lambda row: (
            f"watch-{row.number}" if row.chassis.version >= (7, 14) and row.number % 2 else None
        ),
        "host": lambda row: f"198.51.100.{row.number}",
        "type": _modern(lambda row: row.kind),
        "timeout": lambda row: "3s" if row.modern else "1s",
        "interval": text("1m"),
        "status": lambda row: "up" if row.up else "down",
        "disabled": lambda row: flag(row.number == 6),
        "comment": lambda row: f"upstream {row.number}" if row.number % 3 == 0 else None,
    },
    {
        "since": lambda scene, row: moment(
            scene.now - scene.uptime + 60 * row.number, row.chassis.version
        ),
        "done-tests": lambda scene, row: str(int(scene.uptime / 60)) if row.modern else None,
        "failed-tests": lambda scene, row: (
            str(int(scene.uptime / 6000) * row.number) if row.modern else None
        ),
        "loss-count": _kind_only(_ICMP, lambda scene, row: str(int(scene.now / 60) % 2)),
        "loss-percent": _kind_only(_ICMP, lambda scene, row: str(int(scene.now / 60) % 2 * 10)),
        "rtt-avg": _kind_only(_ICMP, lambda scene, row: _took(scene, row, 1.0)),
        "rtt-min": _kind_only(_ICMP, lambda scene, row: _took(scene, row, 0.7)),
        "rtt-max": _kind_only(_ICMP, lambda scene, row: _took(scene, row, 1.9)),
        "rtt-jitter": _kind_only(_ICMP, lambda scene, row: _took(scene, row, 0.2)),
        "rtt-stdev": _kind_only(_ICMP, lambda scene, row: _took(scene, row, 0.1)),
        "tcp-connect-time": _kind_only(
            ("tcp-conn", *_HTTP), lambda scene, row: _took(scene, row, 1.2)
        ),
        "http-status-code": _kind_only(_HTTP, lambda scene, row: "200" if row.up else "503"),
        "http-resp-time": _kind_only(_HTTP, lambda scene, row: _took(scene, row, 4.0)),
    },
)


class Certificate(NamedTuple):
    number: int
    chassis: Chassis

    @property
    def ends_at(self) -> float:
        return EPOCH + DAY * 300 * (self.number + 1)


def _certificates(chassis: Chassis) -> Sequence[Certificate]:
    return [Certificate(n, chassis) for n in range(1, chassis.model.setup.certificates + 1)]


CERTIFICATE = Table(
    "/certificate",
    _certificates,
    {
        ".id": number,
        "name": lambda row: f"cert{row.number}",
        "digest-algorithm": text("sha256"),
        "key-type": text("rsa"),
        "country": text("ZZ"),
        "organization": text("Example"),
        "common-name": lambda row: f"router{row.number}.example.net",
        "key-size": text("2048"),
        "subject-alt-name": lambda row: f"DNS:router{row.number}.example.net",
        "days-valid": lambda row: str(300 * (row.number + 1)),
        "trusted": lambda row: flag(row.number != 2),
        "key-usage": text("tls-server,tls-client"),
        "ca": lambda row: "cert1" if row.number > 1 else None,
        "serial-number": lambda row: f"{row.number:016X}",
        "fingerprint": lambda row: f"{row.number:064x}",
        "akid": text(""),
        "skid": lambda row: f"{row.number:040x}",
        "invalid-before": lambda row: moment(EPOCH, row.chassis.version),
        "invalid-after": lambda row: moment(row.ends_at, row.chassis.version),
    },
    {"expires-after": lambda scene, row: uptime(max(0.0, row.ends_at - scene.now))},
)


class Visitor(NamedTuple):
    number: int
    name: str
    address: str
    via: str
    group: str


_VISITORS = (
    Visitor(1, "noc", "10.20.0.200", "winbox", "full"),
    Visitor(2, "backup", "10.20.0.201", "ssh", "read"),
)

USERS = Table(
    "/user/active",
    lambda chassis: _VISITORS,
    {
        ".id": number,
        "name": lambda row: row.name,
        "address": lambda row: row.address,
        "via": lambda row: row.via,
        "group": lambda row: row.group,
        "radius": text("false"),
    },
    {
        "when": lambda scene, row: moment(
            scene.now // 3600 * 3600 - 600 * row.number, scene.chassis.version
        )
    },
)


class Container(NamedTuple):
    number: int
    name: str


def _containers(chassis: Chassis) -> Sequence[Container]:
    return [Container(n, f"container-{n}") for n in range(1, chassis.model.setup.containers + 1)]


CONTAINER = Table(
    "/container",
    _containers,
    {
        ".id": number,
        "name": lambda row: row.name,
        "repo": lambda row: f"registry.example.net/{row.name}:latest",
        "tag": text("latest"),
        "os": text("linux"),
        "arch": text("arm64"),
        "status": lambda row: "running" if row.number % 2 else "stopped",
        "interface": lambda row: f"veth{row.number}",
        "comment": lambda row: "resolver" if row.number == 1 else None,
    },
    where=having(Feature.CONTAINER, 7, 4),
)


class Kid(NamedTuple):
    number: int
    user: str


def _kids(chassis: Chassis) -> Sequence[Kid]:
    return [Kid(n, "" if n % 2 == 0 else f"kid{n}") for n in range(1, chassis.model.setup.kids + 1)]


def _rate(scene: Scene, kid: Kid) -> int:
    return int(swing(scene, 9000.0 * kid.number, 0.9, 400, kid.number))


KIDS = Table(
    "/ip/kid-control/device",
    _kids,
    {
        ".id": number,
        "name": lambda kid: f"tablet-{kid.number}",
        "user": lambda kid: kid.user,
        "mac-address": lambda kid: mac(client_mac(kid.number)),
        "ip-address": lambda kid: f"10.20.0.{kid.number + 10}",
        "activity": text(""),
        "blocked": text("false"),
        "limited": lambda kid: flag(kid.number == 3),
        "inactive": text("false"),
        "dynamic": lambda kid: flag(not kid.user),
        "disabled": text("false"),
    },
    {
        "bytes-down": lambda scene, kid: counted(scene, 4000.0 * kid.number, kid.number),
        "bytes-up": lambda scene, kid: counted(scene, 700.0 * kid.number, kid.number),
        "rate-down": lambda scene, kid: str(_rate(scene, kid)),
        "rate-up": lambda scene, kid: str(_rate(scene, kid) // 5),
        "idle-time": lambda scene, kid: uptime((scene.now + kid.number) % 40),
    },
)

TABLES = (NETWATCH, CERTIFICATE, USERS, CONTAINER, KIDS)
