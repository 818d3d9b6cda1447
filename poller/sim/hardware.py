"""The models of the fleet and their ports, for SNMP and RouterOS.

Devices of one model and variant share one chassis, so anything derived from it is made once.
"""

from __future__ import annotations

import functools
import random
import re
from collections.abc import Iterator

from poller import errors
from poller.sim import routerboards
from poller.sim.hardware_model import GBIT, MBIT, Chassis, Group, Kind, Model, Port, Rates

__all__ = [
    "GBIT",
    "MBIT",
    "MODELS",
    "ROUTEROS_MODELS",
    "SNMP_MODELS",
    "Chassis",
    "Kind",
    "Port",
    "Rates",
    "chassis",
]

VARIANTS = 8
DESKS = routerboards.DESKS
UPLINKS = ("uplink to distribution", "uplink to core")

SNMP_MODELS = (
    Model(
        "access-8",
        "sw",
        5,
        (
            Group("Gi0/{n}", 6, GBIT, (0.001, 0.06), DESKS, "GigabitEthernet0/{n}", down=0.2),
            Group(
                "Gi0/{n}", 2, GBIT, (0.02, 0.3), UPLINKS, "GigabitEthernet0/{n}", down=0.1, first=7
            ),
        ),
        ("4.2.1", "4.2.3", "4.3.0"),
        product=1,
    ),
    Model(
        "branch-router",
        "rt",
        3,
        (
            Group(
                "ge0/{n}",
                4,
                GBIT,
                (0.005, 0.2),
                ("LAN", "voice", "guest", ""),
                "ge0/{n}",
                down=0.15,
                first=0,
            ),
            Group(
                "xe0/{n}", 2, 10 * GBIT, (0.01, 0.25), ("transit", "backbone"), "xe0/{n}", first=0
            ),
            Group(
                "vlan{n}", 1, GBIT, (0.001, 0.02), ("management",), "vlan{n}", Kind.VLAN, first=10
            ),
            Group(
                "lo{n}", 1, 0, (0, 0), ("router id",), "lo{n}", Kind.LOOPBACK, first=0, mtu=65535
            ),
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
            Group(
                "Te1/1/{n}",
                4,
                10 * GBIT,
                (0.01, 0.2),
                UPLINKS,
                "TenGigabitEthernet1/1/{n}",
                down=0.25,
            ),
        ),
        ("4.2.3", "4.3.0"),
        product=4,
    ),
)

ROUTEROS_MODELS = routerboards.MODELS

# Only available by name, in no fleet: a typical if_mib poll of 165 variables.
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

# Only available by name, in no fleet: a switch of which every port is up.
SWITCH_48 = Model(
    "switch-48",
    "sw",
    0,
    (Group("Gi1/0/{n}", 48, GBIT, (0.001, 0.05), DESKS, "GigabitEthernet1/0/{n}"),),
    ("4.3.0",),
    product=6,
)

MODELS = {model.name: model for model in (*SNMP_MODELS, *ROUTEROS_MODELS, BRANCH_4, SWITCH_48)}

# A laboratory router is named after its size: lab-300 runs RouterOS 7, lab6-300 RouterOS 6.
_LABORATORY = re.compile(r"(lab|lab6)-([0-9]{1,5})")
_LABORATORY_SOFTWARE = {"lab": "7.20.4", "lab6": "6.49.18"}


@functools.cache
def model(name: str) -> Model:
    """Return the model with this name. Raises InvalidInput."""
    if name in MODELS:
        return MODELS[name]
    match = _LABORATORY.fullmatch(name)
    if match and routerboards.FEWEST_PORTS <= int(match[2]) <= routerboards.MOST_PORTS:
        return routerboards.laboratory(name, int(match[2]), _LABORATORY_SOFTWARE[match[1]])
    size = f"{routerboards.FEWEST_PORTS} to {routerboards.MOST_PORTS}"
    raise errors.InvalidInput(
        f'there is no model "{name}"',
        hint=f"give one of {', '.join(MODELS)}, or lab-N or lab6-N with N from {size}",
    )


@functools.cache
def chassis(name: str, variant: int, software: str = "") -> Chassis:
    """Return the chassis of a model and variant, the same in every run.

    `software` is a version that replaces the default of the model.
    """
    plan = model(name)
    dice = random.Random(f"{name}/{variant}")  # noqa: S311  plausible numbers, not secrets
    return Chassis(
        plan, software or plan.software[variant % len(plan.software)], tuple(_ports(plan, dice))
    )


def first_mac(salt: int) -> int:
    """Return the MAC address before the first of a device's 256. It is locally administered."""
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
