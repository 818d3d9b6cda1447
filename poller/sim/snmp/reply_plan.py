"""Reply plans: the reply to a request, made once per chassis and filled in for each device.

A value that differs between devices of a chassis, or between instants, is a slot in the plan.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from poller.sim.snmp import ber, mib, snmp_request
from poller.sim.snmp.ber import Oid
from poller.sim.snmp.mib import Cell, Identity, Mib, Moving, Own, Personal, View
from poller.sim.snmp.snmp_request import Request

TOO_BIG, NO_SUCH_NAME, NOT_WRITABLE = 1, 2, 17
ENVELOPE = 64  # octets reserved for the message around the variables

# position in the parts, varbind heads, rate, wave, mask
_Slot = tuple[int, tuple[bytes, ...], float, int, int]
# position in the parts, varbind heads, value
_OwnSlot = tuple[int, tuple[bytes, ...], Own]


@dataclass(frozen=True, slots=True)
class Plan:
    """A reply with empty parts where a slot is filled in."""

    status: bytes  # error-status, error-index, and the head of the varbind list up to its length
    parts: list[bytes]
    moving: tuple[_Slot, ...] = ()
    personal: tuple[_OwnSlot, ...] = ()

    def fill(self, identity: Identity, now: float) -> bytes:
        """Return the varbinds for one device at one instant."""
        out = self.parts
        if not self.moving and not self.personal:
            return out[0] if out else b""
        out = out.copy()
        if self.moving:
            waves = identity.life.waves(now)
            for at, heads, rate, wave, mask in self.moving:
                value = int(rate * waves[wave]) & mask
                n = (value.bit_length() >> 3) + 1
                out[at] = heads[n] + value.to_bytes(n, "big")
        for at, heads, value_of in self.personal:
            own = value_of(identity, now)
            out[at] = heads[len(own)] + own
        return b"".join(out)


def make(tree: Mib, version: int, pdu: int, request: Request) -> Plan | None:
    """Return the plan for a request, or None for a PDU that an agent does not answer."""
    if version == snmp_request.V1:
        return _make_v1(tree.v1, pdu, request, tree.max_message - ENVELOPE)
    space = tree.max_message - ENVELOPE
    if pdu == snmp_request.GET:
        return _whole((_get(tree.v2c, name) for name in request.names), space)
    if pdu == snmp_request.GET_NEXT:
        return _whole((_next(tree.v2c, name)[0] for name in request.names), space)
    if pdu == snmp_request.GET_BULK:
        return _cut(_bulk(tree.v2c, request), space)
    return _error(NOT_WRITABLE, 1, request.varbinds) if pdu == snmp_request.SET else None


def _make_v1(view: View, pdu: int, request: Request, space: int) -> Plan | None:
    if pdu == snmp_request.SET:
        return _error(NO_SUCH_NAME, 1, request.varbinds)
    if pdu not in (snmp_request.GET, snmp_request.GET_NEXT):
        return None
    cells: list[Cell] = []
    for number, name in enumerate(request.names, 1):
        cell = view.find(name) if pdu == snmp_request.GET else _at(view, view.after(name))
        if isinstance(cell, int):
            return _error(NO_SUCH_NAME, number, request.varbinds)
        cells.append(cell)
    if sum(map(mib.size, cells)) > space:
        return _error(TOO_BIG, 0, request.varbinds)
    return _plan(cells)


def _get(view: View, name: Oid) -> Cell:
    cell = view.find(name)
    return ber.exception(name, cell) if isinstance(cell, int) else cell


def _next(view: View, name: Oid) -> tuple[Cell, Oid | None]:
    """Return the variable after a name, and its name; at the end, endOfMibView and None."""
    at = view.after(name)
    cell = _at(view, at)
    if isinstance(cell, int):
        return ber.exception(name, cell), None
    return cell, view.names[at]


def _at(view: View, at: int) -> Cell | int:
    return view.cells[at] if at < len(view.cells) else ber.END_OF_MIB_VIEW


def _bulk(view: View, request: Request) -> Iterator[Cell]:
    """Yield the non-repeaters once, then rows of the repeaters until all are at their end."""
    single = max(0, request.first)
    for name in request.names[:single]:
        yield _next(view, name)[0]
    names = request.names[single:]
    ended: set[int] = set()
    for _ in range(max(0, request.second)):
        if len(ended) == len(names):
            return
        for column, name in enumerate(names):
            cell, next_name = _next(view, name)
            if next_name is None:
                ended.add(column)
            else:
                names[column] = next_name
            yield cell


def _whole(cells: Iterable[Cell], space: int) -> Plan:
    """Return a plan with all cells, or tooBig if they do not fit."""
    all_cells = list(cells)
    if sum(map(mib.size, all_cells)) > space:
        return _error(TOO_BIG, 0, b"")
    return _plan(all_cells)


def _cut(cells: Iterator[Cell], space: int) -> Plan:
    """Return a plan with the cells that fit into one message: a bulk reply may end early."""
    fitting: list[Cell] = []
    for cell in cells:
        space -= mib.size(cell)
        if space < 0:
            return _plan(fitting) if fitting else _error(TOO_BIG, 0, b"")
        fitting.append(cell)
    return _plan(fitting)


def _error(status: int, index: int, varbinds: bytes) -> Plan:
    return Plan(_status(status, index), [varbinds])


def _status(status: int, index: int) -> bytes:
    return ber.integer(status) + ber.integer(index) + bytes((ber.SEQUENCE, 0x82))


def _plan(cells: list[Cell]) -> Plan:
    """Join neighbouring constants into one part."""
    parts: list[bytes] = []
    moving: list[_Slot] = []
    personal: list[_OwnSlot] = []
    for constant, group in itertools.groupby(cells, key=lambda cell: isinstance(cell, bytes)):
        if constant:
            parts.append(b"".join(cell for cell in group if isinstance(cell, bytes)))
            continue
        for cell in group:
            if isinstance(cell, Moving):
                moving.append((len(parts), *cell))
            elif isinstance(cell, Personal):
                personal.append((len(parts), *cell))
            parts.append(b"")
    return Plan(_OK, parts, tuple(moving), tuple(personal))


_OK = _status(0, 0)
