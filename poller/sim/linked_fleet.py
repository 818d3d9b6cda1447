"""The links of a simulated fleet: in each site, all SNMP devices hang on the first one.

Fleets have no links unless they are asked for: each linked device has a tree of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from poller.sim import hardware
from poller.sim.fleet import Protocol, SimDevice
from poller.sim.neighbours import LinkProtocol, Neighbour


def linked(devices: Iterable[SimDevice], by: LinkProtocol = LinkProtocol.LLDP) -> list[SimDevice]:
    """Return the same devices with links: the first SNMP device of each site is its core."""
    fleet = list(devices)
    cores: dict[str, SimDevice] = {}
    seen: dict[str, list[Neighbour]] = {}
    for device in fleet:
        if device.protocol is not Protocol.SNMP:
            continue
        core = cores.setdefault(device.site, device)
        if core is not device:
            up, down = _ends(core, device, len(seen.get(core.name, ())), by)
            seen.setdefault(device.name, []).append(up)
            seen.setdefault(core.name, []).append(down)
    return [replace(device, neighbours=tuple(seen.get(device.name, ()))) for device in fleet]


def _ends(
    core: SimDevice, device: SimDevice, number: int, by: LinkProtocol
) -> tuple[Neighbour, Neighbour]:
    """Return the core as the device sees it, and the device as the core sees it."""
    ports = _ports(core)
    core_port = ports[number % len(ports)]
    own_port = _ports(device)[-1]
    up = _neighbour(own_port.index, core, core_port.name, by)
    return up, _neighbour(core_port.index, device, own_port.name, by)


def _neighbour(local_port: int, device: SimDevice, port: str, by: LinkProtocol) -> Neighbour:
    mac = hardware.first_mac(device.salt)
    return Neighbour(local_port, device.name, mac, port, device.address, by)


def _ports(device: SimDevice) -> Sequence[hardware.Port]:
    chassis = hardware.chassis(device.model, device.variant)
    wired = [port for port in chassis.ports if port.kind is hardware.Kind.ETHERNET]
    return wired or chassis.ports
