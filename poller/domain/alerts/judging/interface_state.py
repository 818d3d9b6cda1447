"""The state of an interface in one poll: up, down, off, or not known."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.metrics.series import Labels, Series

#: ifOperStatus: up; down, notPresent and lowerLayerDown. The others say neither: testing, unknown
#: and dormant.
_OPERATING = frozenset({1.0})
_NOT_OPERATING = frozenset({2.0, 6.0, 7.0})
_ENABLED = 1.0  # ifAdminStatus


class InterfaceState(enum.Enum):
    UP = "up"
    DOWN = "down"  # though it is enabled
    OFF = "off"  # by an administrator
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class _Columns:
    """The metrics of a state, and how their numbers are read."""

    admin: str
    up: frozenset[float]
    down: frozenset[float]
    enabled: float


_METRICS = {
    "ifOperStatus": _Columns("ifAdminStatus", _OPERATING, _NOT_OPERATING, _ENABLED),
    "routeros_interface_running": _Columns(
        "routeros_interface_disabled", frozenset({1.0}), frozenset({0.0}), 0.0
    ),
}


@dataclass(frozen=True, slots=True)
class InterfaceColumns:
    """Where a poll has the state of an interface. `admin` is None if it is not polled."""

    operating: int
    admin: int | None
    metric: str

    @property
    def both(self) -> tuple[int, ...]:
        """The columns that the state is read from."""
        return (self.operating,) if self.admin is None else (self.operating, self.admin)

    def state(self, values: Sequence[float]) -> InterfaceState:
        """Return the state in one poll."""
        metric = _METRICS[self.metric]
        value = values[self.operating]
        admin = metric.enabled if self.admin is None else values[self.admin]
        if admin != admin or value != value:  # the poll does not have it
            return InterfaceState.UNKNOWN
        if admin != metric.enabled:
            return InterfaceState.OFF
        if value in metric.up:
            return InterfaceState.UP
        return InterfaceState.DOWN if value in metric.down else InterfaceState.UNKNOWN


def find(series: Sequence[Series]) -> list[InterfaceColumns]:
    """Return the interfaces of a shape, in the order of their series."""
    admins = {metric.admin for metric in _METRICS.values()}
    rows: dict[tuple[str, Labels], int] = {
        (each.name, each.labels): index for index, each in enumerate(series) if each.name in admins
    }
    found = []
    for index, each in enumerate(series):
        # A module may make a series for each name of a state; those carry a label of that name.
        if each.name in _METRICS and each.name not in dict(each.labels):
            admin = rows.get((_METRICS[each.name].admin, each.labels))
            found.append(InterfaceColumns(index, admin, each.name))
    return found
