"""The parts of simulated hardware: ports, models, and the size of their configuration."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field
from typing import NamedTuple

from poller import errors

MBIT = 1_000_000
GBIT = 1_000 * MBIT


class Kind(enum.StrEnum):
    """The kind of an interface; the value is the word of RouterOS."""

    ETHERNET = "ether"
    BRIDGE = "bridge"
    VLAN = "vlan"
    LOOPBACK = "loopback"
    WLAN = "wlan"
    WIFI = "wifi"
    CAP = "cap"
    LTE = "lte"
    W60G = "w60g"
    EOIP = "eoip"
    GRE = "gre-tunnel"
    IPIP = "ipip-tunnel"
    WIREGUARD = "wg"


class Feature(enum.StrEnum):
    """A feature that only some models have, by hardware or by package."""

    POE = "poe"
    SWITCH = "switch"
    WIRELESS = "wireless"  # the package: /interface/wireless and /caps-man
    LTE = "lte"
    W60G = "w60g"
    CONTAINER = "container"


class Rates(NamedTuple):
    """Mean growth of each counter of a port, per second."""

    in_octets: float = 0.0
    out_octets: float = 0.0
    in_unicast: float = 0.0
    out_unicast: float = 0.0
    in_multicast: float = 0.0
    out_multicast: float = 0.0
    in_broadcast: float = 0.0
    out_broadcast: float = 0.0
    in_errors: float = 0.0
    out_errors: float = 0.0
    in_drops: float = 0.0
    out_drops: float = 0.0


@dataclass(frozen=True, slots=True)
class Port:
    """A port of a chassis. Its counters grow with one of the waves of its device."""

    index: int
    name: str
    description: str
    alias: str
    kind: Kind
    speed_bps: int
    mtu: int
    enabled: bool
    up: bool
    link_downs: int
    last_change_ticks: int
    wave: int  # the index of the device's wave that its traffic follows
    rates: Rates

    @property
    def optical(self) -> bool:
        return self.name.startswith("sfp")


@dataclass(frozen=True, slots=True)
class Group:
    """Ports of one kind. `names` and `descriptions` are format strings over the port number `n`."""

    names: str
    count: int
    speed_bps: int
    load: tuple[float, float]  # the lowest and the highest share of the speed
    aliases: tuple[str, ...]
    descriptions: str = ""
    kind: Kind = Kind.ETHERNET
    down: float = 0.0  # share of the ports without a cable
    first: int = 1
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class Setup:
    """The number of rows in the menus of a router of this model."""

    leases: int = 0
    connections: int = 0
    rules: int = 0  # in each table of the firewall
    listed: int = 0  # entries of the address lists
    neighbors: int = 0
    routes: int = 0
    queues: int = 0
    peers: int = 0  # BGP, each with BFD
    wireguards: int = 0
    ipsec: int = 0
    watched: int = 0  # hosts of netwatch
    clients: int = 0  # of each radio
    caps: int = 0  # access points it controls
    containers: int = 0
    certificates: int = 0
    kids: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    """A model of the fleet; `weight` is its share among the models of its protocol."""

    name: str
    prefix: str  # of device names: sw-..., rt-...
    weight: int
    groups: tuple[Group, ...]
    software: tuple[str, ...]
    product: int = 0  # last arc of sysObjectID
    max_message: int = 1472  # the largest SNMP message that it sends
    board: str = ""
    architecture: str = ""
    cpu_count: int = 1
    cpu_mhz: int = 0
    memory: int = 0
    storage: int = 0
    sensors: tuple[tuple[str, str, float], ...] = ()  # name, unit, usual value
    features: frozenset[Feature] = frozenset()
    setup: Setup = Setup()


@dataclass(frozen=True, slots=True, eq=False)
class Chassis:
    """A model with software and ports. Compared by identity, so that it can be a key of caches."""

    model: Model
    software: str
    ports: tuple[Port, ...] = field(repr=False)

    @property
    def version(self) -> tuple[int, ...]:
        return version(self.software)


@functools.cache
def version(software: str) -> tuple[int, ...]:
    """Return the parts of a RouterOS version. Raises InvalidInput."""
    parts = software.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise errors.InvalidInput(
            f'software: "{software}" is not a version of RouterOS', hint="give one like 7.18.2"
        )
    return tuple(map(int, parts))
