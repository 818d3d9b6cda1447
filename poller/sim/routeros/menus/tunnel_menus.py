"""Tunnels and their peers: EoIP, GRE, IPIP, WireGuard, IPsec."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis, Kind, Port
from poller.sim.routeros.menu_tables import (
    Fixed,
    Scene,
    Table,
    counted,
    dice,
    flag,
    number,
    since,
    since_boot,
    text,
    uptime,
)
from poller.sim.routeros.menus import interface_menus


def _tunnel(kind: Kind, path: str, more: Mapping[str, Fixed] | None = None) -> Table:
    return Table(
        path,
        interface_menus.ports(kind),
        {
            **interface_menus.COMMON,
            "mtu": text("auto"),
            "local-address": lambda port: "192.0.2.1",
            "remote-address": lambda port: f"198.51.100.{port.index % 250 + 1}",
            "keepalive": text("10s,10"),
            "dscp": text("inherit"),
            **(more or {}),
        },
    )


EOIP = _tunnel(
    Kind.EOIP,
    "/interface/eoip",
    {"tunnel-id": lambda port: port.name.removeprefix("eoip-tunnel"), "l2mtu": text("65535")},
)
GRE = _tunnel(Kind.GRE, "/interface/gre")
IPIP = _tunnel(Kind.IPIP, "/interface/ipip")


def _port(port: Port) -> str:
    return str(13_230 + port.index % 100)


WIREGUARD = Table(
    "/interface/wireguard",
    interface_menus.ports(Kind.WIREGUARD),
    {**interface_menus.COMMON, "listen-port": _port},
    where=since(7),
)


class Peer(NamedTuple):
    number: int
    interface: str
    comment: str
    disabled: bool
    away: bool  # no handshake since boot
    rate: float


def _peers(chassis: Chassis) -> Sequence[Peer]:
    luck = dice(chassis, "wireguard")
    names = [port.name for port in chassis.ports if port.kind is Kind.WIREGUARD] or ["wireguard1"]
    return [
        Peer(
            n,
            names[0],
            f"notebook {n}" if n % 2 else "",
            n % 5 == 0,
            n % 4 == 0,
            luck.uniform(50, 20_000),
        )
        for n in range(1, chassis.model.setup.wireguards + 1)
    ]


def _handshake(scene: Scene, peer: Peer) -> str | None:
    return None if peer.away or peer.disabled else uptime((scene.now + 40 * peer.number) % 120 + 1)


WIREGUARD_PEERS = Table(
    "/interface/wireguard/peers",
    _peers,
    {
        ".id": number,
        "interface": lambda peer: peer.interface,
        "name": lambda peer: f"peer{peer.number}",
        "public-key": lambda peer: f"{peer.number:02d}" + "A" * 41 + "=",
        "endpoint-address": text(""),
        "endpoint-port": text("0"),
        "current-endpoint-address": lambda peer: "" if peer.away else f"203.0.113.{peer.number}",
        "current-endpoint-port": lambda peer: "0" if peer.away else str(51_000 + peer.number),
        "allowed-address": lambda peer: f"10.99.0.{peer.number + 1}/32",
        "dynamic": text("false"),
        "disabled": lambda peer: flag(peer.disabled),
        "comment": lambda peer: peer.comment or None,
    },
    {
        "rx": lambda scene, peer: "0" if peer.away else counted(scene, peer.rate, peer.number),
        "tx": lambda scene, peer: "0" if peer.away else counted(scene, peer.rate * 3, peer.number),
        "last-handshake": _handshake,
    },
    where=since(7),
)


class Remote(NamedTuple):
    """An IPsec peer."""

    number: int
    rate: float


def _remotes(chassis: Chassis) -> Sequence[Remote]:
    luck = dice(chassis, "ipsec")
    return [Remote(n, luck.uniform(100, 90_000)) for n in range(1, chassis.model.setup.ipsec + 1)]


_STATISTICS = frozenset({"rx-bytes", "rx-packets", "tx-bytes", "tx-packets"})

IPSEC = Table(
    "/ip/ipsec/active-peers",
    _remotes,
    {
        ".id": number,
        "id": lambda peer: f"branch{peer.number}.example.net",
        "local-address": text("192.0.2.1"),
        "remote-address": lambda peer: f"198.51.100.{100 + peer.number}",
        "name": lambda peer: f"branch{peer.number}",
        "side": lambda peer: "responder" if peer.number % 2 else "initiator",
        "responder": lambda peer: flag(peer.number % 2 == 1),
        "natt-peer": lambda peer: flag(peer.number == 2) if peer.number == 2 else None,
        "state": text("established"),
        "ph2-total": lambda peer: str(1 + peer.number % 3),
        "comment": lambda peer: f"to branch {peer.number}" if peer.number == 1 else None,
    },
    {
        "uptime": lambda scene, peer: uptime(since_boot(scene, 0.1 * peer.number)),
        "last-seen": lambda scene, peer: uptime(1 + scene.now % 29),
        "rx-bytes": lambda scene, peer: counted(scene, peer.rate, peer.number),
        "rx-packets": lambda scene, peer: counted(scene, peer.rate / 600, peer.number),
        "tx-bytes": lambda scene, peer: counted(scene, peer.rate / 2, peer.number),
        "tx-packets": lambda scene, peer: counted(scene, peer.rate / 900, peer.number),
    },
    stats=_STATISTICS,
)

TABLES = (EOIP, GRE, IPIP, WIREGUARD, WIREGUARD_PEERS, IPSEC)
