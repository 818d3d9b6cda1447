"""Which rows of the interface tables rest between two full reads, because their values stand still.

Two kinds rest: columns that describe a port (its type, MTU and speed), and all numbers of a port
that is down. The state of every port is read at every poll; a state that changes ends the rest.
Pure.
"""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import NamedTuple

from poller.collectors.snmp.engines.engine_protocol import Row
from poller.collectors.snmp.modules.module_set import ModuleSet

_IF_ENTRY = "1.3.6.1.2.1.2.2.1"
_IF_X_ENTRY = "1.3.6.1.2.1.31.1.1.1"
_OPER_STATUS = f"{_IF_ENTRY}.8"
_LAST_CHANGE = f"{_IF_ENTRY}.9"
#: ifAdminStatus, ifOperStatus, ifLastChange, ifCounterDiscontinuityTime.
_STATES = frozenset({f"{_IF_ENTRY}.7", _OPER_STATUS, _LAST_CHANGE, f"{_IF_X_ENTRY}.19"})
#: ifIndex, ifType, ifMtu, ifSpeed; ifLinkUpDownTrapEnable, ifHighSpeed, ifPromiscuousMode,
#: ifConnectorPresent.
_SLOW = frozenset(
    {
        *(f"{_IF_ENTRY}.{column}" for column in (1, 3, 4, 5)),
        *(f"{_IF_X_ENTRY}.{column}" for column in (14, 15, 16, 17)),
    }
)
#: down, notPresent, lowerLayerDown
_DOWN = frozenset({2, 6, 7})


class Rest(enum.IntEnum):
    """How much may rest."""

    NOTHING = 0
    COLUMNS = 1
    PORTS = 2  # columns, and ports that are down


class RestingRows(NamedTuple):
    """The OIDs that rest, and those whose values must stay the same meanwhile."""

    resting: frozenset[str]
    states: frozenset[str]


def find(rows: Sequence[Row], module_set: ModuleSet, rest: Rest) -> RestingRows | None:
    """The rows of a full read that may rest; None if there are none.

    A port takes part if its ifOperStatus and ifLastChange are read as numbers.
    """
    if rest is Rest.NOTHING:
        return None

    numbers = [_Cell.of(row) for row in rows if _is_interface_number(row[0], module_set)]
    oper = {cell.port: cell.value for cell in numbers if cell.column == _OPER_STATUS}
    dated = {cell.port for cell in numbers if cell.column == _LAST_CHANGE}
    down = {port for port, value in oper.items() if value in _DOWN and rest is Rest.PORTS}

    resting = set()
    states = set()
    for cell in numbers:
        if cell.port not in oper or cell.port not in dated:
            continue
        if cell.column in _STATES:
            states.add(cell.oid)
        elif cell.column in _SLOW or cell.port in down:
            resting.add(cell.oid)
    return RestingRows(frozenset(resting), frozenset(states)) if resting else None


class _Cell(NamedTuple):
    """One number of an interface table."""

    oid: str
    column: str
    port: str
    value: object

    @classmethod
    def of(cls, row: Row) -> _Cell:
        oid, value = row
        column, _, port = oid.rpartition(".")
        return cls(oid, column, port, value)


def _is_interface_number(oid: str, module_set: ModuleSet) -> bool:
    table = oid.rpartition(".")[0].rpartition(".")[0]
    if table not in (_IF_ENTRY, _IF_X_ENTRY):
        return False
    return module_set.number_metric(oid) is not None
