"""What is a box made of? The nouns of the simulated hardware: ports, models, and what a model is set up to do."""

from __future__ import annotations

import enum
import functools
from dataclasses import dataclass, field
from typing import NamedTuple

from poller import errors

MBIT = 1_000_000
GBIT = 1_000 * MBIT


class Kind(enum.StrEnum):
    """What sort of interface it is; the value is RouterOS's word for it."""

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
    """What only some boxes have, by hardware or by package."""

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
    wave: int  # which of the device's waves its traffic follows
    rates: Rates

    @property
    def optical(self) -> bool:
        return self.name.startswith("sfp")


@dataclass(frozen=True, slots=True)
class Group:
    """Ports of one sort: `names` and `descriptions` are format strings over the port number `n`."""

    names: str
    count: int
    speed_bps: int
    load: tuple[float, float]  # share of the speed, from and to
    aliases: tuple[str, ...]
    descriptions: str = ""
    kind: Kind = Kind.ETHERNET
    down: float = 0.0  # share of the ports that nothing is plugged into
    first: int = 1
    mtu: int = 1500


@dataclass(frozen=True, slots=True)
class Setup:
    """How many of each thing a router of this model has: rows of its menus."""

    leases: int = 0
    connections: int = 0
    rules: int = 0  # of each of the firewall's tables
    listed: int = 0  # entries of the address lists
    neighbors: int = 0
    routes: int = 0
    queues: int = 0
    peers: int = 0  # BGP, each with BFD
    wireguards: int = 0
    ipsec: int = 0
    watched: int = 0  # hosts netwatch looks after
    clients: int = 0  # of each radio
    caps: int = 0  # access points it controls
    containers: int = 0
    certificates: int = 0
    kids: int = 0


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    prefix: str  # what a device of it is called: sw-..., rt-...
    weight: int
    groups: tuple[Group, ...]
    software: tuple[str, ...]
    product: int = 0  # last arc of sysObjectID
    max_message: int = 1472  # the largest SNMP message it makes
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
    """One of its kind: compared by identity, so that what is made from it can be kept under it."""

    model: Model
    software: str
    ports: tuple[Port, ...] = field(repr=False)

    @property
    def version(self) -> tuple[int, ...]:
        return version(self.software)


@functools.cache
def version(software: str) -> tuple[int, ...]:
    """Raises InvalidInput when it is none."""
    parts = software.split(".")
    if not all(part.isascii() and part.isdecimal() for part in parts):
        raise errors.InvalidInput(
            f'software: "{software}" is no version of RouterOS', hint="give one like 7.18.2"
        )
    return tuple(map(int, parts))
