"""Interfaces of every kind: /interface, bridges and VLANs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis, Kind, Port, Rates
from poller.sim.routeros.menu_tables import (
    BITS_64,
    Fixed,
    Live,
    Scene,
    Table,
    Watch,
    flag,
    mac,
    text,
)

_WITHOUT_ADDRESS = frozenset({Kind.GRE, Kind.IPIP, Kind.WIREGUARD})


def identity(port: Port) -> str:
    return f"*{port.index:X}"


def ports(*kinds: Kind) -> Callable[[Chassis], Sequence[Port]]:
    """Return a function that lists the interfaces of these kinds, in their order."""
    return lambda chassis: [port for port in chassis.ports if port.kind in kinds]


def address(scene: Scene, port: Port) -> str:
    return mac(scene.mac + port.index)


def counter(rate: Callable[[Rates], float]) -> Live:
    return lambda scene, port: str(int(rate(port.rates) * scene.waves[port.wave]) & BITS_64)


def _received(rates: Rates) -> float:
    return rates.in_unicast + rates.in_multicast + rates.in_broadcast


def _sent(rates: Rates) -> float:
    return rates.out_unicast + rates.out_multicast + rates.out_broadcast


#: The properties that every menu of one kind of interface has.
COMMON: dict[str, Fixed] = {
    ".id": identity,
    "name": lambda port: port.name,
    "mtu": lambda port: str(port.mtu),
    "actual-mtu": lambda port: str(port.mtu),
    "running": lambda port: flag(port.up),
    "disabled": lambda port: flag(not port.enabled),
    "comment": lambda port: port.alias or None,
}

_TRAFFIC = Watch(
    live={
        "rx-bits-per-second": lambda scene, port: str(int(port.rates.in_octets * 8)),
        "tx-bits-per-second": lambda scene, port: str(int(port.rates.out_octets * 8)),
        "rx-packets-per-second": lambda scene, port: str(int(_received(port.rates))),
        "tx-packets-per-second": lambda scene, port: str(int(_sent(port.rates))),
    },
    fixed={"name": lambda port: port.name},
    items="interface",
)

INTERFACE = Table(
    "/interface",
    lambda chassis: chassis.ports,
    {
        **COMMON,
        "default-name": lambda port: port.name if port.kind is Kind.ETHERNET else None,
        "type": lambda port: port.kind.value,
        "l2mtu": lambda port: "1514" if port.kind is Kind.ETHERNET else None,
        "link-downs": lambda port: str(port.link_downs),
    },
    {
        "mac-address": lambda scene, port: (
            None if port.kind in _WITHOUT_ADDRESS else address(scene, port)
        ),
        "rx-byte": counter(lambda rates: rates.in_octets),
        "tx-byte": counter(lambda rates: rates.out_octets),
        "rx-packet": counter(_received),
        "tx-packet": counter(_sent),
        "rx-drop": counter(lambda rates: rates.in_drops),
        "tx-drop": counter(lambda rates: rates.out_drops),
        "tx-queue-drop": counter(lambda rates: rates.out_drops),
        "rx-error": counter(lambda rates: rates.in_errors),
        "tx-error": counter(lambda rates: rates.out_errors),
    },
    watches={"monitor-traffic": _TRAFFIC},
)

VLAN = Table(
    "/interface/vlan",
    ports(Kind.VLAN),
    {
        **COMMON,
        "vlan-id": lambda port: port.name.removeprefix("vlan"),
        "interface": text("bridge1"),
        "arp": text("enabled"),
        "use-service-tag": text("false"),
    },
    {"mac-address": address},
)

BRIDGE = Table(
    "/interface/bridge",
    ports(Kind.BRIDGE),
    {
        **COMMON,
        "protocol-mode": text("rstp"),
        "vlan-filtering": text("true"),
        "fast-forward": text("true"),
    },
    {"mac-address": address},
)


class Membership(NamedTuple):
    """The ports of a bridge that carry one VLAN."""

    number: int
    vlan: str
    tagged: str
    untagged: str


def _memberships(chassis: Chassis) -> Sequence[Membership]:
    if not ports(Kind.BRIDGE)(chassis):
        return []
    wired = [port.name for port in ports(Kind.ETHERNET)(chassis)]
    vlans = [port.name.removeprefix("vlan") for port in ports(Kind.VLAN)(chassis)]
    return [
        Membership(
            n, vlan, ",".join(["bridge1", *wired[:1]]), ",".join(wired[1 + n % 3 : 3 + n % 3])
        )
        for n, vlan in enumerate(["1", *vlans], 1)
    ]


BRIDGE_VLAN = Table(
    "/interface/bridge/vlan",
    _memberships,
    {
        ".id": lambda row: f"*{row.number:X}",
        "bridge": text("bridge1"),
        "vlan-ids": lambda row: row.vlan,
        "tagged": lambda row: row.tagged,
        "untagged": lambda row: row.untagged,
        "current-tagged": lambda row: row.tagged,
        "current-untagged": lambda row: row.untagged,
        "dynamic": text("false"),
        "disabled": text("false"),
    },
)

TABLES = (INTERFACE, VLAN, BRIDGE, BRIDGE_VLAN)
