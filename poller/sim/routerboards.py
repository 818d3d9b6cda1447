"""The RouterOS models, and the laboratory router: every feature, with any number of interfaces."""

from __future__ import annotations

from poller.sim.hardware_model import GBIT, MBIT, Feature, Group, Kind, Model, Setup

DESKS = ("desk", "printer", "phone", "camera", "access point", "door reader", "")
_VOLTAGE = ("voltage", "V", 24.1)
_TEMPERATURE = ("temperature", "C", 41.0)
_CPU_TEMPERATURE = ("cpu-temperature", "C", 52.0)
_FAN_1 = ("fan1-speed", "RPM", 4120.0)
_SOFTWARE = ("7.18.2", "7.20.4", "7.14.3", "6.49.18")

FEWEST_PORTS = 40  # of a laboratory router: it has ports of every kind
MOST_PORTS = 4000

MODELS = (
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
        _SOFTWARE[:3],
        board="RB5009UG+S+",
        architecture="arm64",
        cpu_count=4,
        cpu_mhz=1400,
        memory=1 << 30,
        storage=1 << 30,
        sensors=(_VOLTAGE, _TEMPERATURE),
        features=frozenset({Feature.SWITCH}),
        setup=Setup(
            leases=14,
            connections=60,
            rules=6,
            neighbors=2,
            routes=5,
            wireguards=2,
            watched=2,
            certificates=1,
        ),
    ),
    Model(
        "hap-ac2",
        "ap",
        3,
        (
            Group("ether{n}", 5, GBIT, (0.001, 0.05), DESKS, down=0.4),
            Group("bridge{n}", 1, 0, (0, 0), ("LAN",), kind=Kind.BRIDGE),
            Group("wlan{n}", 2, 600 * MBIT, (0.001, 0.05), ("guests", "staff"), kind=Kind.WLAN),
        ),
        _SOFTWARE,
        board="hAP ac^2",
        architecture="arm",
        cpu_count=4,
        cpu_mhz=716,
        memory=128 << 20,
        storage=16 << 20,
        features=frozenset({Feature.WIRELESS, Feature.SWITCH, Feature.POE}),
        setup=Setup(leases=6, connections=25, rules=4, neighbors=1, routes=3, clients=3),
    ),
    Model(
        "ccr2004",
        "rt",
        2,
        (
            Group("ether{n}", 1, GBIT, (0.001, 0.01), ("management",)),
            Group(
                "sfp-sfpplus{n}",
                12,
                10 * GBIT,
                (0.01, 0.25),
                ("customer", "peering", "backbone"),
                down=0.3,
            ),
            Group("sfp28-{n}", 2, 25 * GBIT, (0.02, 0.2), ("core",)),
        ),
        _SOFTWARE[:3],
        board="CCR2004-1G-12S+2XS",
        architecture="arm64",
        cpu_count=4,
        cpu_mhz=1700,
        memory=4 << 30,
        storage=128 << 20,
        sensors=(_TEMPERATURE, _CPU_TEMPERATURE, _FAN_1),
        setup=Setup(
            connections=200,
            rules=8,
            listed=10,
            neighbors=6,
            routes=40,
            queues=4,
            peers=4,
            ipsec=2,
            watched=4,
        ),
    ),
)

_SENSORS = (
    _VOLTAGE,
    _TEMPERATURE,
    _CPU_TEMPERATURE,
    ("phy-temperature", "C", 47.0),
    ("switch-temperature", "C", 49.0),
    ("board-temperature1", "C", 36.0),
    ("board-temperature2", "C", 38.0),
    _FAN_1,
    ("fan2-speed", "RPM", 4080.0),
    ("fan3-speed", "RPM", 3990.0),
    ("fan4-speed", "RPM", 4210.0),
    ("power-consumption", "W", 31.0),
    ("psu1-voltage", "V", 12.1),
    ("psu2-voltage", "V", 12.0),
    ("psu1-current", "A", 1.4),
    ("psu2-current", "A", 1.2),
    ("psu1-state", "", 1.0),
    ("psu2-state", "", 0.0),
    ("poe-out-consumption", "W", 14.0),
    ("poe-in-voltage", "V", 48.2),
    ("jack-voltage", "V", 24.3),
    ("2pin-voltage", "V", 24.2),
)
_TUNNELS = (0.001, 0.02)
_NOT_IN_VERSION_6 = frozenset({Kind.WIFI, Kind.WIREGUARD, Kind.LOOPBACK})


def laboratory(name: str, ports: int, software: str) -> Model:
    """Return a router with every feature, rows in every menu and this number of interfaces."""
    vlans = ports // 4
    possible = (
        Group("sfp-sfpplus{n}", 8, 10 * GBIT, (0.01, 0.2), ("peering", "backbone", ""), down=0.2),
        Group("bridge{n}", 1, 0, (0, 0), ("LAN",), kind=Kind.BRIDGE),
        Group(
            "vlan{n}",
            vlans,
            GBIT,
            (0.001, 0.02),
            ("floor", "tenant", ""),
            kind=Kind.VLAN,
            first=100,
        ),
        Group("lo", 1, 0, (0, 0), ("",), kind=Kind.LOOPBACK, mtu=65_536),
        Group("wlan{n}", 2, 600 * MBIT, (0.001, 0.05), ("staff",), kind=Kind.WLAN),
        Group("wifi{n}", 2, 1200 * MBIT, (0.001, 0.05), ("guests",), kind=Kind.WIFI),
        Group("cap{n}", 2, 600 * MBIT, (0.001, 0.05), ("",), kind=Kind.CAP),
        Group("lte{n}", 1, 150 * MBIT, (0.001, 0.05), ("spare uplink",), kind=Kind.LTE),
        Group(
            "wlan60-{n}", 1, 1000 * MBIT, (0.01, 0.2), ("bridge to the warehouse",), kind=Kind.W60G
        ),
        Group("eoip-tunnel{n}", 2, GBIT, _TUNNELS, ("",), kind=Kind.EOIP, mtu=1458),
        Group("gre-tunnel{n}", 2, GBIT, _TUNNELS, ("branch",), kind=Kind.GRE, mtu=1476),
        Group("ipip-tunnel{n}", 1, GBIT, _TUNNELS, ("",), kind=Kind.IPIP, mtu=1480),
        Group("wireguard{n}", 1, GBIT, _TUNNELS, ("road warriors",), kind=Kind.WIREGUARD, mtu=1420),
    )
    special = tuple(
        group
        for group in possible
        if software.startswith("7") or group.kind not in _NOT_IN_VERSION_6
    )
    copper = Group(
        "ether{n}", ports - sum(g.count for g in special), GBIT, (0.001, 0.1), DESKS, down=0.3
    )
    return Model(
        name,
        "lab",
        0,
        (copper, *special),
        (software,),
        board="RB5009UPr+S+",
        architecture="arm64",
        cpu_count=4,
        cpu_mhz=1400,
        memory=1 << 30,
        storage=1 << 30,
        sensors=_SENSORS,
        features=frozenset(Feature),
        setup=Setup(
            leases=40,
            connections=150,
            rules=12,
            listed=30,
            neighbors=5,
            routes=60,
            queues=8,
            peers=4,
            wireguards=5,
            ipsec=3,
            watched=6,
            clients=6,
            caps=2,
            containers=2,
            certificates=3,
            kids=4,
        ),
    )
