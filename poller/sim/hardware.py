"""What boxes exist, and which ports does one have? Pure description, shared by SNMP and RouterOS.

Devices of one model and variant share one chassis, so whatever is made from it is made once.
"""

from __future__ import annotations

import enum
import functools
import random
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

VARIANTS = 8

MBIT = 1_000_000
GBIT = 1_000 * MBIT


class Kind(enum.StrEnum):
    """What sort of interface it is; the value is RouterOS's word for it."""

    ETHERNET = "ether"
    BRIDGE = "bridge"
    VLAN = "vlan"
    LOOPBACK = "loopback"


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


@dataclass(frozen=True, slots=True)
class Chassis:
    model: Model
    software: str
    ports: tuple[Port, ...] = field(repr=False)


DESKS = ("desk", "printer", "phone", "camera", "access point", "door reader", "")
UPLINKS = ("uplink to distribution", "uplink to core")
_VOLTAGE = ("voltage", "V", 24.1)
_TEMPERATURE = ("temperature", "C", 41.0)
_ROUTEROS = ("7.18.2", "7.20.4", "7.14.3", "6.49.18")

SNMP_MODELS = (
    Model(
        "access-8",
        "sw",
        5,
        (
            Group("Gi0/{n}", 6, GBIT, (0.001, 0.06), DESKS, "GigabitEthernet0/{n}", down=0.2),
            Group("Gi0/{n}", 2, GBIT, (0.02, 0.3), UPLINKS, "GigabitEthernet0/{n}", down=0.1, first=7),
        ),
        ("4.2.1", "4.2.3", "4.3.0"),
        product=1,
    ),
    Model(
        "branch-router",
        "rt",
        3,
        (
            Group("ge0/{n}", 4, GBIT, (0.005, 0.2), ("LAN", "voice", "guest", ""), "ge0/{n}", down=0.15, first=0),
            Group("xe0/{n}", 2, 10 * GBIT, (0.01, 0.25), ("transit", "backbone"), "xe0/{n}", first=0),
            Group("vlan{n}", 1, GBIT, (0.001, 0.02), ("management",), "vlan{n}", Kind.VLAN, first=10),
            Group("lo{n}", 1, 0, (0, 0), ("router id",), "lo{n}", Kind.LOOPBACK, first=0, mtu=65535),
        ),
        ("12.1R3", "12.2R1"),
        product=2,
        max_message=2048,
    ),
    Model(
        "access-24",
        "sw",
        1,
        (
            Group("Gi1/0/{n}", 24, GBIT, (0.001, 0.05), DESKS, "GigabitEthernet1/0/{n}", down=0.3),
            Group("Te1/1/{n}", 2, 10 * GBIT, (0.01, 0.2), UPLINKS, "TenGigabitEthernet1/1/{n}"),
        ),
        ("4.2.3", "4.3.0"),
        product=3,
    ),
    Model(
        "access-48",
        "sw",
        1,
        (
            Group("Gi1/0/{n}", 48, GBIT, (0.001, 0.05), DESKS, "GigabitEthernet1/0/{n}", down=0.35),
            Group("Te1/1/{n}", 4, 10 * GBIT, (0.01, 0.2), UPLINKS, "TenGigabitEthernet1/1/{n}", down=0.25),
        ),
        ("4.2.3", "4.3.0"),
        product=4,
    ),
)

ROUTEROS_MODELS = (
    Model(
        "rb5009",
        "rt",
        5,
        (
            Group("ether{n}", 8, GBIT, (0.002, 0.15), DESKS, down=0.25),
            Group("sfp-sfpplus{n}", 1, 10 * GBIT, (0.01, 0.1), ("uplink",)),
            Group("bridge{n}", 1, 0, (0, 0), ("LAN",), kind=Kind.BRIDGE),
            Group("vlan{n}", 1, GBIT, (0.001, 0.02), ("management",), kind=Kind.VLAN, first=10),
        ),
        _ROUTEROS[:3],
        board="RB5009UG+S+",
        architecture="arm64",
        cpu_count=4,
        cpu_mhz=1400,
        memory=1 << 30,
        storage=1 << 30,
        sensors=(_VOLTAGE, _TEMPERATURE),
    ),
    Model(
        "hap-ac2",
        "ap",
        3,
        (
            Group("ether{n}", 5, GBIT, (0.001, 0.05), DESKS, down=0.4),
            Group("bridge{n}", 1, 0, (0, 0), ("LAN",), kind=Kind.BRIDGE),
        ),
        _ROUTEROS,
        board="hAP ac^2",
        architecture="arm",
        cpu_count=4,
        cpu_mhz=716,
        memory=128 << 20,
        storage=16 << 20,
    ),
    Model(
        "ccr2004",
        "rt",
        2,
        (
            Group("ether{n}", 1, GBIT, (0.001, 0.01), ("management",)),
            Group("sfp-sfpplus{n}", 12, 10 * GBIT, (0.01, 0.25), ("customer", "peering", "backbone"), down=0.3),
            Group("sfp28-{n}", 2, 25 * GBIT, (0.02, 0.2), ("core",)),
        ),
        _ROUTEROS[:3],
        board="CCR2004-1G-12S+2XS",
        architecture="arm64",
        cpu_count=4,
        cpu_mhz=1700,
        memory=4 << 30,
        storage=128 << 20,
        sensors=(_TEMPERATURE, ("cpu-temperature", "C", 52.0), ("fan1-speed", "RPM", 4120.0)),
    ),
)

# In no fleet unless asked for by name: the usual size of an if_mib poll, 165 variables.
BRANCH_4 = Model(
    "branch-4",
    "rt",
    0,
    (
        Group("ge0/{n}", 2, GBIT, (0.005, 0.2), ("LAN", "guest"), "ge0/{n}", first=0),
        Group("ge1/{n}", 2, GBIT, (0.02, 0.3), UPLINKS, "ge1/{n}", first=0),
    ),
    ("12.2R1",),
    product=5,
)

MODELS = {model.name: model for model in (*SNMP_MODELS, *ROUTEROS_MODELS, BRANCH_4)}


@functools.cache
def chassis(model: str, variant: int) -> Chassis:
    """The chassis of a model and variant: the same on every machine and in every run."""
    plan = MODELS[model]
    dice = random.Random(f"{model}/{variant}")  # noqa: S311  believable numbers, not secrets
    return Chassis(plan, plan.software[variant % len(plan.software)], tuple(_ports(plan, dice)))


def first_mac(salt: int) -> int:
    """The MAC address before a device's first: locally administered (02:...), with room for 256 ports."""
    return 0x02 << 40 | (salt & 0xFFFF_FFFF) << 8


def _ports(model: Model, dice: random.Random) -> Iterator[Port]:
    index = 0
    for group in model.groups:
        for n in range(group.first, group.first + group.count):
            index += 1
            yield _port(group, n, index, dice)


def _port(group: Group, n: int, index: int, dice: random.Random) -> Port:
    enabled = group.kind is not Kind.ETHERNET or dice.random() >= group.down / 4
    up = enabled and (index == 1 or dice.random() >= group.down)
    alias = dice.choice(group.aliases)
    return Port(
        index=index,
        name=group.names.format(n=n),
        description=group.descriptions.format(n=n),
        alias=f"{alias} {n}" if alias and group.count > 1 else alias,
        kind=group.kind,
        speed_bps=group.speed_bps,
        mtu=group.mtu,
        enabled=enabled,
        up=up,
        link_downs=dice.randrange(4),
        last_change_ticks=dice.randrange(100, 900) if up else 0,
        wave=index % 4,
        rates=_rates(group, dice) if up else Rates(),
    )


def _rates(group: Group, dice: random.Random) -> Rates:
    arriving = group.speed_bps / 8 * dice.uniform(*group.load)
    leaving = group.speed_bps / 8 * dice.uniform(*group.load)
    chatter = 0.0 if group.kind is Kind.LOOPBACK else 1.0
    return Rates(
        in_octets=arriving,
        out_octets=leaving,
        in_unicast=arriving / dice.uniform(320, 1100),
        out_unicast=leaving / dice.uniform(320, 1100),
        in_multicast=chatter * dice.uniform(0.1, 6),
        out_multicast=chatter * dice.uniform(0.1, 6),
        in_broadcast=chatter * dice.uniform(0.05, 3),
        out_broadcast=chatter * dice.uniform(0.05, 3),
        in_errors=dice.choice((0.0, 0.0, 1e-5, 2e-4)) * chatter,
        out_errors=dice.choice((0.0, 0.0, 0.0, 1e-5)) * chatter,
        in_drops=dice.choice((0.0, 0.0, 1e-4, 3e-3)) * chatter,
        out_drops=dice.choice((0.0, 1e-4, 1e-2)) * chatter,
    )
