"""Wired ports: links, optics, power over Ethernet, and the switch."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import GBIT, MBIT, Chassis, Feature, Kind, Port
from poller.sim.routeros.menu_tables import (
    Fixed,
    Live,
    Scene,
    Table,
    Watch,
    counted,
    flag,
    having,
    number,
    text,
)
from poller.sim.routeros.menus import interface_menus

_POWERED = 16  # maximum number of ports with power over Ethernet


def _rate(port: Port) -> str | None:
    if not port.up:
        return None
    return (
        f"{port.speed_bps / GBIT:g}Gbps"
        if port.speed_bps >= GBIT
        else f"{port.speed_bps // MBIT}Mbps"
    )


def _linked(words: str) -> Fixed:
    return lambda port: words if port.up else None


def _module(value: Callable[[Port], str]) -> Fixed:
    """Wrap a property of an SFP module. Every fourth optical port is empty."""
    return lambda port: value(port) if _has_module(port) else None


def _has_module(port: Port) -> bool:
    return port.optical and (port.up or port.index % 4 != 0)


def _is_copper(port: Port) -> bool:
    """Return whether the module is a direct attach cable, which has no optics."""
    return port.index % 5 == 2


def _measured(usual: float, swing: float, digits: int) -> Live:
    def value(scene: Scene, port: Port) -> str | None:
        if not _has_module(port) or _is_copper(port):
            return None
        return f"{usual + swing * math.sin(scene.now / 700 + port.index):.{digits}f}"

    return value


def _optics(fibre: str, copper: str) -> Fixed:
    return _module(lambda port: copper if _is_copper(port) else fibre)


_MONITOR = Watch(
    fixed={
        "name": lambda port: port.name,
        "status": lambda port: "link-ok" if port.up else "no-link",
        "auto-negotiation": lambda port: "done" if port.up else "incomplete",
        "rate": _rate,
        "full-duplex": _linked("true"),
        "tx-flow-control": _linked("false"),
        "rx-flow-control": _linked("false"),
        "sfp-module-present": lambda port: flag(_has_module(port)) if port.optical else None,
        "sfp-rx-loss": _module(lambda port: flag(not port.up)),
        "sfp-tx-fault": _module(lambda port: "false"),
        "sfp-type": _module(lambda port: "SFP/SFP+/SFP28"),
        "sfp-connector-type": _optics("LC", "copper-pigtail"),
        "sfp-vendor-name": _module(lambda port: "Example Optics"),
        "sfp-vendor-part-number": _optics("EX-10G-LR", "EX-10G-DAC1M"),
        "sfp-vendor-revision": _module(lambda port: "1.0"),
        "sfp-vendor-serial": _module(lambda port: f"EX{port.index:06d}"),
        "sfp-manufacturing-date": _module(lambda port: "24-03-11"),
        "sfp-wavelength": lambda port: (
            "1310" if _has_module(port) and not _is_copper(port) else None
        ),
    },
    live={
        "sfp-temperature": _measured(43.0, 2.0, 0),
        "sfp-supply-voltage": _measured(3.29, 0.02, 3),
        "sfp-tx-bias-current": _measured(32.0, 1.5, 0),
        "sfp-tx-power": _measured(-2.1, 0.2, 3),
        "sfp-rx-power": _measured(-5.6, 0.8, 3),
    },
)

ETHERNET = Table(
    "/interface/ethernet",
    interface_menus.ports(Kind.ETHERNET),
    {
        **interface_menus.COMMON,
        "default-name": lambda port: port.name,
        "l2mtu": text("1514"),
        "arp": text("enabled"),
        "auto-negotiation": text("true"),
        "loop-protect": text("default"),
        "bandwidth": text("unlimited/unlimited"),
        "running": lambda port: flag(port.up),
    },
    {
        "mac-address": interface_menus.address,
        "orig-mac-address": interface_menus.address,
        "rx-broadcast": interface_menus.counter(lambda rates: rates.in_broadcast),
        "rx-multicast": interface_menus.counter(lambda rates: rates.in_multicast),
        "tx-broadcast": interface_menus.counter(lambda rates: rates.out_broadcast),
        "tx-multicast": interface_menus.counter(lambda rates: rates.out_multicast),
        "rx-fcs-error": interface_menus.counter(lambda rates: rates.in_errors),
    },
    stats=frozenset(
        {"rx-broadcast", "rx-multicast", "tx-broadcast", "tx-multicast", "rx-fcs-error"}
    ),
    watches={"monitor": _MONITOR},
)


# Power over Ethernet, on copper ports.


def _powering(chassis: Chassis) -> Sequence[Port]:
    copper = [port for port in interface_menus.ports(Kind.ETHERNET)(chassis) if not port.optical]
    return copper[1 : 1 + _POWERED]


def _gives(port: Port) -> bool:
    return port.up and port.index % 3 != 0


def _state(port: Port) -> str:
    if port.index % 7 == 0:
        return "disabled"
    return "powered-on" if _gives(port) else "waiting-for-load"


def _current(scene: Scene, port: Port) -> float:
    """Return the current in milliamperes."""
    return 90 + 9 * (port.index % 11) + 4 * math.sin(scene.now / 240 + port.index)


def _given(value: Callable[[Scene, Port], str]) -> Live:
    return lambda scene, port: value(scene, port) if _state(port) == "powered-on" else None


_VOLTS = 48.2

POE = Table(
    "/interface/ethernet/poe",
    _powering,
    {
        ".id": interface_menus.identity,
        "name": lambda port: port.name,
        "poe-out": lambda port: "off" if _state(port) == "disabled" else "auto-on",
        "poe-priority": lambda port: str(10 + port.index % 3),
        "poe-voltage": text("auto"),
        "poe-lldp-enabled": text("false"),
        "power-cycle-ping-enabled": text("false"),
        "power-cycle-interval": text("none"),
    },
    where=having(Feature.POE),
    watches={
        "monitor": Watch(
            fixed={
                "name": lambda port: port.name,
                "poe-out": lambda port: "off" if _state(port) == "disabled" else "auto-on",
                "poe-out-status": _state,
            },
            live={
                "poe-out-voltage": _given(lambda scene, port: f"{_VOLTS:.1f}"),
                "poe-out-current": _given(lambda scene, port: f"{_current(scene, port):.0f}"),
                "poe-out-power": _given(
                    lambda scene, port: f"{_current(scene, port) * _VOLTS / 1000:.1f}"
                ),
            },
        )
    },
)


# The switch has counters of its own, and two lanes on its port to the CPU.


class SwitchPort(NamedTuple):
    number: int
    name: str
    port: Port | None  # None: the port to the CPU


def _switch_ports(chassis: Chassis) -> Sequence[SwitchPort]:
    wired = interface_menus.ports(Kind.ETHERNET)(chassis)
    found = [SwitchPort(n, port.name, port) for n, port in enumerate(wired, 1)]
    return [*found, SwitchPort(len(found) + 1, "switch1-cpu", None)]


def _switched(of_port: Callable[[Port], float], lane: float) -> Live:
    def value(scene: Scene, row: SwitchPort) -> str:
        if row.port is None:
            return f"{counted(scene, lane)},{counted(scene, lane / 3, 1)}"
        return counted(scene, of_port(row.port), row.port.wave)

    return value


_COUNTERS: dict[str, Live] = {
    "driver-rx-byte": _switched(lambda port: port.rates.in_octets * 0.9, 90_000),
    "driver-rx-packet": _switched(lambda port: port.rates.in_unicast * 0.9, 120),
    "driver-tx-byte": _switched(lambda port: port.rates.out_octets * 0.9, 80_000),
    "driver-tx-packet": _switched(lambda port: port.rates.out_unicast * 0.9, 110),
    "rx-bytes": _switched(lambda port: port.rates.in_octets, 91_000),
    "rx-broadcast": _switched(lambda port: port.rates.in_broadcast, 4),
    "rx-pause": _switched(lambda port: port.rates.in_unicast * 1e-3, 0.3),
    "rx-multicast": _switched(lambda port: port.rates.in_multicast, 6),
    "rx-fcs-error": _switched(lambda port: port.rates.in_errors, 0),
    "rx-align-error": _switched(lambda port: port.rates.in_unicast * 2e-5, 0.02),
    "rx-fragment": _switched(lambda port: port.rates.in_unicast * 3e-5, 0.03),
    "rx-overflow": _switched(lambda port: port.rates.in_drops, 0),
    "tx-bytes": _switched(lambda port: port.rates.out_octets, 81_000),
    "tx-broadcast": _switched(lambda port: port.rates.out_broadcast, 3),
    "tx-pause": _switched(lambda port: port.rates.out_unicast * 1e-3, 0.4),
    "tx-multicast": _switched(lambda port: port.rates.out_multicast, 5),
    "tx-underrun": _switched(lambda port: port.rates.out_unicast * 2e-5, 0.05),
    "tx-collision": _switched(lambda port: port.rates.out_unicast * 4e-5, 0.06),
    "tx-deferred": _switched(lambda port: port.rates.out_unicast * 5e-5, 0.07),
    "rx-drop": _switched(lambda port: port.rates.in_drops, 0),
    "tx-drop": _switched(lambda port: port.rates.out_drops, 0),
}

SWITCH_PORT = Table(
    "/interface/ethernet/switch/port",
    _switch_ports,
    {
        ".id": number,
        "name": lambda row: row.name,
        "switch": text("switch1"),
        "vlan-mode": text("disabled"),
    },
    _COUNTERS,
    where=having(Feature.SWITCH),
    stats=frozenset(_COUNTERS),
)

TABLES = (ETHERNET, POE, SWITCH_PORT)
