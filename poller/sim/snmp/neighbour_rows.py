"""The neighbours of a simulated device as rows of LLDP-MIB and of Cisco's CDP."""

from __future__ import annotations

import ipaddress
from collections.abc import Iterator, Sequence

from poller.sim import hardware
from poller.sim.fleet import SimDevice
from poller.sim.hardware_model import Chassis
from poller.sim.neighbours import LinkProtocol, Neighbour
from poller.sim.snmp import ber
from poller.sim.snmp.ber import Oid

LLDP: Oid = (1, 0, 8802, 1, 1, 2, 1)
CDP_ENTRY: Oid = (1, 3, 6, 1, 4, 1, 9, 9, 23, 1, 2, 1, 1)
_MAC_CHASSIS, _NAMED_PORT = 4, 5
_IPV4 = 1


def rows(device: SimDevice) -> Iterator[tuple[Oid, bytes]]:
    """Yield the variables of a device with neighbours, encoded; in no order."""
    chassis = hardware.chassis(device.model, device.variant)
    by_lldp = [each for each in device.neighbours if each.by is LinkProtocol.LLDP]
    by_cdp = [each for each in device.neighbours if each.by is LinkProtocol.CDP]
    if by_lldp:
        yield from _own(device, chassis)
        yield from _by_lldp(by_lldp)
    yield from _by_cdp(by_cdp)


def _own(device: SimDevice, chassis: Chassis) -> Iterator[tuple[Oid, bytes]]:
    local = (*LLDP, 3)
    yield _row((*local, 1, 0), ber.integer(_MAC_CHASSIS))
    yield _row((*local, 2, 0), ber.octets(_mac(hardware.first_mac(device.salt))))
    yield _row((*local, 3, 0), ber.octets(device.name))
    for port in chassis.ports:
        yield _row((*local, 7, 1, 2, port.index), ber.integer(_NAMED_PORT))
        yield _row((*local, 7, 1, 3, port.index), ber.octets(port.name))
        yield _row((*local, 7, 1, 4, port.index), ber.octets(port.name))


def _by_lldp(neighbours: Sequence[Neighbour]) -> Iterator[tuple[Oid, bytes]]:
    for number, each in enumerate(neighbours, 1):
        index = (100 * number, each.local_port, number)  # time mark, port, row
        cells = {
            4: ber.integer(_MAC_CHASSIS),
            5: ber.octets(_mac(each.mac)),
            6: ber.integer(_NAMED_PORT),
            7: ber.octets(each.port),
            8: ber.octets(each.port),
            9: ber.octets(f"{each.name}.example.net"),
        }
        for column, value in cells.items():
            yield _row((*LLDP, 4, 1, 1, column, *index), value)


def _by_cdp(neighbours: Sequence[Neighbour]) -> Iterator[tuple[Oid, bytes]]:
    for number, each in enumerate(neighbours, 1):
        cells = {
            3: ber.integer(_IPV4),
            4: ber.octets(ipaddress.IPv4Address(each.address).packed),
            6: ber.octets(f"{each.name.upper()}(FOX{number:04d})"),
            7: ber.octets(each.port),
        }
        for column, value in cells.items():
            yield _row((*CDP_ENTRY, column, each.local_port, number), value)


def _row(name: Oid, value: bytes) -> tuple[Oid, bytes]:
    return name, ber.varbind(name, value)


def _mac(number: int) -> bytes:
    return number.to_bytes(6, "big")
