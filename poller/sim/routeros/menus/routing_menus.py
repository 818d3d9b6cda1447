"""Routes, BGP, BFD and the routing processes. Versions 6 and 7 differ most here."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis
from poller.sim.routeros.menu_tables import (
    Fixed,
    Scene,
    Table,
    before,
    counted,
    dice,
    flag,
    number,
    short,
    since,
    since_boot,
    text,
    uptime,
)

_OWN_AS = "64500"


# Routes: the origin of a route is a flag, and an unset flag is left out.


class Route(NamedTuple):
    number: int
    destination: str
    gateway: str
    origin: str
    active: bool


_ORIGINS = ("connect", "static", "bgp", "bgp", "ospf", "bgp")


def _routes(destinations: str, gateway: str) -> Callable[[Chassis], Sequence[Route]]:
    def rows(chassis: Chassis) -> Sequence[Route]:
        origins = _ORIGINS if chassis.model.setup.peers else _ORIGINS[:2]
        return [
            Route(n, destinations.format(n=n), gateway, origins[n % len(origins)], n % 13 != 12)
            for n in range(chassis.model.setup.routes)
        ]

    return rows


def _from(origin: str) -> Fixed:
    return lambda route: "true" if route.origin == origin else None


def _route_menu(path: str, rows: Callable[[Chassis], Sequence[Route]]) -> Table:
    return Table(
        path,
        rows,
        {
            ".id": lambda route: f"*{0x8000_0000 + route.number:X}",
            "dst-address": lambda route: route.destination,
            "gateway": lambda route: route.gateway,
            "distance": lambda route: {"connect": "0", "static": "1", "bgp": "20"}.get(
                route.origin, "110"
            ),
            "routing-table": text("main"),
            "active": lambda route: "true" if route.active else None,
            "connect": _from("connect"),
            "static": _from("static"),
            "bgp": _from("bgp"),
            "ospf": _from("ospf"),
            "dynamic": lambda route: None if route.origin == "static" else "true",
            "disabled": text("false"),
        },
    )


ROUTE = _route_menu("/ip/route", _routes("10.{n}.0.0/16", "192.0.2.254"))
ROUTE_6 = _route_menu("/ipv6/route", _routes("2001:db8:{n:x}::/48", "fe80::1"))


# BGP


class Peer(NamedTuple):
    number: int
    established: bool
    prefixes: int
    rate: float

    @property
    def name(self) -> str:
        return f"peer{self.number}"

    @property
    def address(self) -> str:
        return f"192.0.2.{100 + self.number}"


def _peers(chassis: Chassis) -> Sequence[Peer]:
    luck = dice(chassis, "bgp")
    count = chassis.model.setup.peers
    return [
        Peer(n, n % 4 != 0, luck.randrange(1, 900), luck.uniform(0.02, 0.4))
        for n in range(1, count + 1)
    ]


def _session_uptime(scene: Scene, peer: Peer) -> str | None:
    return uptime(since_boot(scene, peer.number / 8)) if peer.established else None


_MESSAGE = 61.5  # octets on average

BGP_SESSION = Table(
    "/routing/bgp/session",
    _peers,
    {
        ".id": number,
        "name": lambda peer: f"{peer.name}-1",
        "remote.address": lambda peer: peer.address,
        "remote.as": lambda peer: str(64_600 + peer.number),
        "remote.id": lambda peer: peer.address,
        "remote.afi": text("ip,ipv6"),
        "local.address": text("192.0.2.1"),
        "local.as": text(_OWN_AS),
        "local.afi": text("ip,ipv6"),
        "hold-time": text("3m"),
        "keepalive-time": text("1m"),
        "established": lambda peer: "true" if peer.established else None,
        "prefix-count": lambda peer: str(peer.prefixes) if peer.established else "0",
    },
    {
        "remote.messages": lambda scene, peer: counted(scene, peer.rate, peer.number),
        "remote.bytes": lambda scene, peer: counted(scene, peer.rate * _MESSAGE, peer.number),
        "local.messages": lambda scene, peer: counted(scene, peer.rate / 3, peer.number),
        "local.bytes": lambda scene, peer: counted(scene, peer.rate / 3 * _MESSAGE, peer.number),
        "uptime": _session_uptime,
    },
    where=since(7),
)

BGP_PEER = Table(
    "/routing/bgp/peer",
    _peers,
    {
        ".id": number,
        "name": lambda peer: peer.name,
        "instance": text("default"),
        "remote-address": lambda peer: peer.address,
        "remote-as": lambda peer: str(64_600 + peer.number),
        "local-address": text("192.0.2.1"),
        "address-families": text("ip,ipv6"),
        "state": lambda peer: "established" if peer.established else "active",
        "established": lambda peer: flag(peer.established),
        "prefix-count": lambda peer: str(peer.prefixes) if peer.established else "0",
        "used-hold-time": text("3m"),
        "disabled": text("false"),
    },
    {
        "uptime": _session_uptime,
        "updates-sent": lambda scene, peer: counted(scene, peer.rate / 9, peer.number),
        "updates-received": lambda scene, peer: counted(scene, peer.rate / 5, peer.number),
        "withdrawn-sent": lambda scene, peer: counted(scene, peer.rate / 99, peer.number),
        "withdrawn-received": lambda scene, peer: counted(scene, peer.rate / 70, peer.number),
    },
    where=before(7),
)


# BFD


def _bfd(path: str, remote: str, version: Callable[[Chassis], bool]) -> Table:
    return Table(
        path,
        _peers,
        {
            ".id": number,
            remote: lambda peer: peer.address,
            "local-address": text("192.0.2.1"),
            "interface": text("ether1"),
            "state": lambda peer: "up" if peer.established else "down",
            "up": lambda peer: flag(peer.established),
            "multiplier": text("5"),
            "actual-tx-interval": lambda peer: short(0.2 * peer.number),
            "desired-tx-interval": text("200ms"),
            "required-min-rx": text("200ms"),
            "remote-min-rx": text("200ms"),
            "hold-time": lambda peer: short(1.0 * peer.number),
            "state-changes": lambda peer: str(peer.number * 2 - 1),
        },
        {
            "packets-rx": lambda scene, peer: counted(
                scene, 5.0 if peer.established else 0.0, peer.number
            ),
            "packets-tx": lambda scene, peer: counted(scene, 5.2, peer.number),
            "uptime": _session_uptime,
        },
        where=version,
    )


BFD_SESSION = _bfd("/routing/bfd/session", "remote-address", since(7))
BFD_NEIGHBOR = _bfd("/routing/bfd/neighbor", "address", before(7))


# The routing processes of version 7


class Process(NamedTuple):
    number: int
    tasks: str
    private: int


_TASKS = ("main", "policy,rib", "bgp", "ospf", "fantasy")


def _processes(chassis: Chassis) -> Sequence[Process]:
    return [Process(n, tasks, 3 + n * 2) for n, tasks in enumerate(_TASKS)]


PROCESS = Table(
    "/routing/stats/process",
    _processes,
    {
        ".id": number,
        "tasks": lambda row: row.tasks,
        "id": lambda row: row.tasks.partition(",")[0],
        "pid": lambda row: str(180 + row.number),
        "rpid": text("0"),
        "process-id": lambda row: str(180 + row.number),
        "private-mem-blocks": lambda row: str(row.private * 256 * 1024),
        "shared-mem-blocks": lambda row: str(row.number * 512 * 1024),
        "max-busy": lambda row: uptime(1 + row.number),
        "max-calc": lambda row: uptime(1 + row.number // 2),
    },
    {
        "kernel-time": lambda scene, row: uptime(scene.uptime * (row.number + 1) / 2000),
        "process-time": lambda scene, row: uptime(scene.uptime * (row.number + 1) / 1200),
        "cur-busy": lambda scene, row: "0s",
    },
    where=since(7),
)

TABLES = (ROUTE, ROUTE_6, BGP_SESSION, BGP_PEER, BFD_SESSION, BFD_NEIGHBOR, PROCESS)
