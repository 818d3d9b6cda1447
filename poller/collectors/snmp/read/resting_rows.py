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
#: Sets of ports that are down, cached for all devices with the same rows together.
_MAX_FOUND = 32


class Rest(enum.IntEnum):
    """How much may rest."""

    NOTHING = 0
    COLUMNS = 1
    PORTS = 2  # columns, and ports that are down


class RestingRows(NamedTuple):
    """The OIDs that rest, and those whose values must stay the same meanwhile."""

    resting: frozenset[str]
    states: frozenset[str]


class InterfaceNumbers:
    """The numbers of the interface tables in the rows of a full read.

    Devices with the same rows share them: only the states differ, which say what may rest.
    """

    def __init__(self, rows: Sequence[Row], module_set: ModuleSet) -> None:
        cells = []
        for position, (oid, _) in enumerate(rows):
            column, _, port = oid.rpartition(".")
            if _is_interface_number(column, oid, module_set):
                cells.append(_Cell(oid, column, port, position))
        dated = {cell.port for cell in cells if cell.column == _LAST_CHANGE}
        oper = {cell.port: cell.position for cell in cells if cell.column == _OPER_STATUS}
        #: Position of the ifOperStatus of each port that takes part.
        self._oper = {port: position for port, position in oper.items() if port in dated}
        self._cells = [cell for cell in cells if cell.port in self._oper]
        self._found: dict[tuple[Rest, frozenset[str]], RestingRows | None] = {}

    def resting(self, rows: Sequence[Row], rest: Rest) -> RestingRows | None:
        """The rows of a full read that may rest; None if there are none.

        A port takes part if its ifOperStatus and ifLastChange are read as numbers.
        """
        if rest is Rest.NOTHING:
            return None
        down: frozenset[str] = frozenset()
        if rest is Rest.PORTS:
            states = ((port, rows[position][1]) for port, position in self._oper.items())
            down = frozenset(port for port, state in states if state in _DOWN)

        key = (rest, down)
        if key not in self._found:
            if len(self._found) >= _MAX_FOUND:
                self._found.clear()
            self._found[key] = self._find(down)
        return self._found[key]

    def _find(self, down: frozenset[str]) -> RestingRows | None:
        resting = set()
        states = set()
        for cell in self._cells:
            if cell.column in _STATES:
                states.add(cell.oid)
            elif cell.column in _SLOW or cell.port in down:
                resting.add(cell.oid)
        return RestingRows(frozenset(resting), frozenset(states)) if resting else None


class _Cell(NamedTuple):
    """One number of an interface table, and its position in the rows of the full read."""

    oid: str
    column: str
    port: str
    position: int


def _is_interface_number(column: str, oid: str, module_set: ModuleSet) -> bool:
    table = column.rpartition(".")[0]
    if table not in (_IF_ENTRY, _IF_X_ENTRY):
        return False
    return module_set.number_metric(oid) is not None
