"""The objects of an agent: a sorted tree per chassis, encoded in advance where possible.

A cell is one variable: `bytes` (the encoded varbind, the same on all devices of the chassis),
`Moving` (a number that grows with one of the device's waves) or `Personal` (a value per device).
"""

from __future__ import annotations

import bisect
import functools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field
from typing import NamedTuple

from poller.sim import device_traffic, hardware
from poller.sim.device_traffic import Life
from poller.sim.hardware_model import Chassis, Kind, Port
from poller.sim.snmp import ber
from poller.sim.snmp.ber import Oid

MIB_2: Oid = (1, 3, 6, 1, 2, 1)
SYSTEM = (*MIB_2, 1)
IF_NUMBER = (*MIB_2, 2, 1, 0)
IF_ENTRY = (*MIB_2, 2, 2, 1)
IF_X_ENTRY = (*MIB_2, 31, 1, 1, 1)
IF_TABLE_LAST_CHANGE = (*MIB_2, 31, 1, 5, 0)
SNMP_ENGINE: Oid = (1, 3, 6, 1, 6, 3, 10, 2, 1)
# 32473 is the enterprise number set aside for examples (RFC 5612).
PRODUCTS: Oid = (1, 3, 6, 1, 4, 1, 32473, 1)

BITS_31 = (1 << 31) - 1
BITS_32 = (1 << 32) - 1
BITS_64 = (1 << 64) - 1
_IF_TYPES = {Kind.ETHERNET: 6, Kind.BRIDGE: 209, Kind.VLAN: 135, Kind.LOOPBACK: 24}
_UP, _DOWN = 1, 2
_TRUE, _FALSE = 1, 2
_COUNTER64_COLUMNS = range(6, 14)  # of ifXTable


class Identity(NamedTuple):
    """The facts about a device that a `Personal` cell can use."""

    name: str
    location: str
    mac: int  # the MAC addresses of the ports follow it
    life: Life


class Moving(NamedTuple):
    """A growing number. `heads[n]` is the varbind up to a value of n octets."""

    heads: tuple[bytes, ...]
    rate: float
    wave: int
    mask: int


Own = Callable[[Identity, float], bytes]  # the value of a device at an instant


class Personal(NamedTuple):
    """A value that differs between devices. `heads[n]` is the varbind up to a value of n octets."""

    heads: tuple[bytes, ...]
    value: Own


Cell = bytes | Moving | Personal
PERSONAL_LIMIT = 32  # octets in a `Personal` value: device names are shorter


def size(cell: Cell) -> int:
    """Return the maximum number of octets of a cell."""
    return len(cell) if isinstance(cell, bytes) else len(cell.heads[-1]) + len(cell.heads) - 1


@dataclass(frozen=True)
class View:
    """The objects that one SNMP version can read, in order."""

    names: list[Oid]
    cells: list[Cell]
    objects: frozenset[Oid] = field(default_factory=frozenset)  # names without their instance part

    def find(self, name: Oid) -> Cell | int:
        """Return the cell of exactly this name, or the exception tag for a missing one."""
        at = bisect.bisect_left(self.names, name)
        if at < len(self.names) and self.names[at] == name:
            return self.cells[at]
        has_object = any(name[:n] in self.objects for n in range(len(name), 0, -1))
        return ber.NO_SUCH_INSTANCE if has_object else ber.NO_SUCH_OBJECT

    def after(self, name: Oid) -> int:
        """Return the position of the first variable after a name; `len(names)` at the end."""
        return bisect.bisect_right(self.names, name)


@dataclass(frozen=True)
class Mib:
    """The objects of a chassis for each SNMP version."""

    v1: View  # without Counter64, which SNMPv1 does not have
    v2c: View
    max_message: int


@functools.cache
def mib(model: str, variant: int) -> Mib:
    """Return the objects of a chassis, made once."""
    return extended(model, variant, ())


def extended(model: str, variant: int, more: Iterable[tuple[Oid, Cell]]) -> Mib:
    """Return the objects of a chassis, and more of one device."""
    chassis = hardware.chassis(model, variant)
    rows = sorted((*_objects(chassis), *more), key=lambda row: row[0])
    narrow = [
        row for row in rows if row[0][:-2] != IF_X_ENTRY or row[0][-2] not in _COUNTER64_COLUMNS
    ]
    return Mib(_view(narrow), _view(rows), chassis.model.max_message)


def _view(rows: list[tuple[Oid, Cell]]) -> View:
    return View(
        [name for name, _ in rows],
        [cell for _, cell in rows],
        frozenset(name[:-1] for name, _ in rows),
    )


def _objects(chassis: Chassis) -> Iterator[tuple[Oid, Cell]]:
    yield from _system(chassis)
    yield IF_NUMBER, ber.varbind(IF_NUMBER, ber.integer(len(chassis.ports)))
    yield IF_TABLE_LAST_CHANGE, ber.varbind(IF_TABLE_LAST_CHANGE, ber.integer(100, ber.TIME_TICKS))
    for port in chassis.ports:
        for column, make in _IF_COLUMNS.items():
            yield (name := (*IF_ENTRY, column, port.index)), make(name, port)
        for column, make in _IF_X_COLUMNS.items():
            yield (name := (*IF_X_ENTRY, column, port.index)), make(name, port)
    yield from _engine(chassis)


def _system(chassis: Chassis) -> Iterator[tuple[Oid, Cell]]:
    model = chassis.model
    description = f"Simulated {model.name}, software {chassis.software}, {len(chassis.ports)} ports"
    cells: dict[int, Callable[[Oid], Cell]] = {
        1: _fixed(ber.octets(description)),
        2: _fixed(ber.oid((*PRODUCTS, model.product))),
        3: _ticking(100.0, ber.TIME_TICKS, BITS_32),
        4: _fixed(ber.octets("noc@example.net")),
        5: _octets(lambda device, now: device.name.encode()),
        6: _octets(lambda device, now: device.location.encode()),
        7: _fixed(ber.integer(78 if model.prefix == "rt" else 6)),
    }
    for arc, make in cells.items():
        yield (name := (*SYSTEM, arc, 0)), make(name)


def _engine(chassis: Chassis) -> Iterator[tuple[Oid, Cell]]:
    cells: dict[int, Callable[[Oid], Cell]] = {
        1: _octets(lambda device, now: b"\x80\x00\x7e\xd9\x03" + device.mac.to_bytes(6, "big")),
        2: lambda name: personal(name, ber.INTEGER, _boots),
        3: _ticking(1.0, ber.INTEGER, BITS_31),
        4: _fixed(ber.integer(chassis.model.max_message)),
    }
    for arc, make in cells.items():
        yield (name := (*SNMP_ENGINE, arc, 0)), make(name)


def moving(name: Oid, tag: int, rate: float, wave: int, mask: int) -> Cell:
    """Return a cell for a growing number; for a rate of zero, a constant."""
    if rate == 0.0:
        return ber.varbind(name, ber.integer(0, tag))
    return Moving(_heads(name, tag, mask.bit_length() // 8 + 1), rate, wave, mask)


def personal(name: Oid, tag: int, value: Own) -> Personal:
    """Return a cell for a value that differs between devices, of at most PERSONAL_LIMIT octets."""
    return Personal(_heads(name, tag, PERSONAL_LIMIT), value)


def _heads(name: Oid, tag: int, maximum: int) -> tuple[bytes, ...]:
    encoded = ber.oid(name)
    return tuple(
        bytes((ber.SEQUENCE,)) + ber.length(len(encoded) + 2 + n) + encoded + bytes((tag, n))
        for n in range(maximum + 1)
    )


def _fixed(value: bytes) -> Callable[[Oid], Cell]:
    return lambda name: ber.varbind(name, value)


def _ticking(per_second: float, tag: int, mask: int) -> Callable[[Oid], Cell]:
    return lambda name: moving(name, tag, per_second, device_traffic.UPTIME, mask)


def _boots(device: Identity, now: float) -> bytes:
    return ber.integer(device.life.boots(now))[2:]


def _octets(value: Own) -> Callable[[Oid], Cell]:
    return lambda name: personal(name, ber.OCTET_STRING, value)


_Column = Callable[[Oid, Port], Cell]


def _of(value: Callable[[Port], bytes]) -> _Column:
    return lambda name, port: ber.varbind(name, value(port))


def _counter32(rate: Callable[[hardware.Rates], float]) -> _Column:
    return lambda name, port: moving(name, ber.COUNTER32, rate(port.rates), port.wave, BITS_32)


def _counter64(rate: Callable[[hardware.Rates], float]) -> _Column:
    return lambda name, port: moving(name, ber.COUNTER64, rate(port.rates), port.wave, BITS_64)


def _mac(name: Oid, port: Port) -> Cell:
    if port.kind is Kind.LOOPBACK:
        return ber.varbind(name, ber.octets(""))
    number = port.index
    return personal(
        name, ber.OCTET_STRING, lambda device, now: (device.mac + number).to_bytes(6, "big")
    )


def _gauge(value: int) -> bytes:
    return ber.integer(value, ber.GAUGE32)


_IF_COLUMNS: dict[int, _Column] = {
    1: _of(lambda port: ber.integer(port.index)),
    2: _of(lambda port: ber.octets(port.description)),
    3: _of(lambda port: ber.integer(_IF_TYPES[port.kind])),
    4: _of(lambda port: ber.integer(port.mtu)),
    5: _of(lambda port: _gauge(min(port.speed_bps, BITS_32))),
    6: _mac,
    7: _of(lambda port: ber.integer(_UP if port.enabled else _DOWN)),
    8: _of(lambda port: ber.integer(_UP if port.up else _DOWN)),
    9: _of(lambda port: ber.integer(port.last_change_ticks, ber.TIME_TICKS)),
    10: _counter32(lambda rates: rates.in_octets),
    11: _counter32(lambda rates: rates.in_unicast),
    12: _counter32(lambda rates: rates.in_multicast + rates.in_broadcast),
    13: _counter32(lambda rates: rates.in_drops),
    14: _counter32(lambda rates: rates.in_errors),
    15: _counter32(lambda rates: 0.0),
    16: _counter32(lambda rates: rates.out_octets),
    17: _counter32(lambda rates: rates.out_unicast),
    18: _counter32(lambda rates: rates.out_multicast + rates.out_broadcast),
    19: _counter32(lambda rates: rates.out_drops),
    20: _counter32(lambda rates: rates.out_errors),
    21: _of(lambda port: _gauge(0)),
    22: _of(lambda port: ber.oid((0, 0))),
}

_IF_X_COLUMNS: dict[int, _Column] = {
    1: _of(lambda port: ber.octets(port.name)),
    2: _counter32(lambda rates: rates.in_multicast),
    3: _counter32(lambda rates: rates.in_broadcast),
    4: _counter32(lambda rates: rates.out_multicast),
    5: _counter32(lambda rates: rates.out_broadcast),
    6: _counter64(lambda rates: rates.in_octets),
    7: _counter64(lambda rates: rates.in_unicast),
    8: _counter64(lambda rates: rates.in_multicast),
    9: _counter64(lambda rates: rates.in_broadcast),
    10: _counter64(lambda rates: rates.out_octets),
    11: _counter64(lambda rates: rates.out_unicast),
    12: _counter64(lambda rates: rates.out_multicast),
    13: _counter64(lambda rates: rates.out_broadcast),
    14: _of(lambda port: ber.integer(1)),
    15: _of(lambda port: _gauge(port.speed_bps // hardware.MBIT)),
    16: _of(lambda port: ber.integer(_FALSE)),
    17: _of(lambda port: ber.integer(_TRUE if port.kind is Kind.ETHERNET else _FALSE)),
    18: _of(lambda port: ber.octets(port.alias)),
    19: _of(lambda port: ber.integer(0, ber.TIME_TICKS)),
}
