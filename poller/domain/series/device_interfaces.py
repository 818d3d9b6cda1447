"""Interfaces of a device as people know them, from the newest poll of one target.

An interface is known by the labels that identify its series, whatever its row in the table.
"""

from __future__ import annotations

import enum
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

from poller.domain.metrics.reading import Kind, Labels, ReadingSet, Series
from poller.domain.metrics.series_identity import Identity, series_keys


class Counted(enum.StrEnum):
    """A thing that an interface counts."""

    IN_OCTETS = "in"
    OUT_OCTETS = "out"
    IN_PACKETS = "packets in"
    OUT_PACKETS = "packets out"
    IN_ERRORS = "errors in"
    OUT_ERRORS = "errors out"
    IN_DISCARDS = "discards in"
    OUT_DISCARDS = "discards out"


#: Names of counters, the better one first.
COUNTERS: Mapping[Counted, tuple[str, ...]] = {
    Counted.IN_OCTETS: ("ifHCInOctets", "ifInOctets", "routeros_interface_rx_byte"),
    Counted.OUT_OCTETS: ("ifHCOutOctets", "ifOutOctets", "routeros_interface_tx_byte"),
    Counted.IN_PACKETS: ("ifHCInUcastPkts", "ifInUcastPkts", "routeros_interface_rx_packet"),
    Counted.OUT_PACKETS: ("ifHCOutUcastPkts", "ifOutUcastPkts", "routeros_interface_tx_packet"),
    Counted.IN_ERRORS: ("ifInErrors", "routeros_interface_rx_error"),
    Counted.OUT_ERRORS: ("ifOutErrors", "routeros_interface_tx_error"),
    Counted.IN_DISCARDS: ("ifInDiscards", "routeros_interface_rx_drop"),
    Counted.OUT_DISCARDS: ("ifOutDiscards", "routeros_interface_tx_drop"),
}
#: Counters without which a row is no interface.
_TRAFFIC = (Counted.IN_OCTETS, Counted.OUT_OCTETS)
#: States: the metric, and the value that means yes.
_UP = {"ifOperStatus": 1.0, "routeros_interface_running": 1.0}
_ENABLED = {"ifAdminStatus": 1.0, "routeros_interface_disabled": 0.0}
#: Speeds, the better one first, and bits a second of one unit.
_SPEEDS = {"ifHighSpeed": 1e6, "routeros_interface_rate": 1e6, "ifSpeed": 1.0}
#: Labels that name an interface, and those that people describe it with.
_NAMES = ("ifName", "ifDescr", "name", "interface")
_ALIASES = ("ifAlias", "comment")
#: An info of RouterOS that has the comment of an interface; its other series have not.
_INFO = "routeros_interface_info"


@dataclass(slots=True)
class Interface:
    """One interface. None: the device does not say."""

    known_by: Labels
    name: str = ""
    alias: str = ""
    index: int = 0
    is_up: bool | None = None
    is_enabled: bool | None = None
    bits_per_s: float | None = None
    counters: dict[Counted, str] = field(default_factory=dict)  # the metric that counts it

    @property
    def key(self) -> str:
        """The text that addresses the interface: its name, or its labels without one."""
        return self.name or " ".join(text for _, text in self.known_by)

    def matches(self, search: str) -> bool:
        """Whether name or alias contains a text, in any case."""
        wanted = search.casefold()
        return wanted in self.name.casefold() or wanted in self.alias.casefold()


def of_poll(poll: ReadingSet, by: Identity = Identity.IF_NAME) -> list[Interface]:
    """Return the interfaces of a poll, in the order of the device's table."""
    found: dict[Labels, Interface] = {}
    comments: dict[str, str] = {}
    metrics: dict[Labels, dict[str, float]] = {}
    keys = series_keys(poll.series, by)
    for series, value, (name, known_by) in zip(poll.series.series, poll.values, keys, strict=True):
        if name == _INFO:
            labels = dict(series.labels)
            comments[labels.get("name", "")] = labels.get("comment", "")
        elif _is_of_interface(series):
            if known_by not in found:
                found[known_by] = _named(known_by, series.labels)
            metrics.setdefault(known_by, {})[name] = value
    rows = (_complete(each, metrics[each.known_by], comments) for each in found.values())
    return [each for each in rows if any(role in each.counters for role in _TRAFFIC)]


def is_of_interface(name: str) -> bool:
    """Whether a metric is shown with the interfaces, and so not among other measurements."""
    return name in _METRICS or name == _INFO


def _is_of_interface(series: Series) -> bool:
    return series.kind is not Kind.INFO and series.name in _METRICS


def _named(known_by: Labels, labels: Labels) -> Interface:
    texts = dict(labels)
    named = Interface(known_by)
    named.name = next((texts[each] for each in _NAMES if texts.get(each)), "")
    named.alias = next((texts[each] for each in _ALIASES if texts.get(each)), "")
    index = texts.get("ifIndex", "")
    named.index = int(index) if index.isdecimal() and len(index) < 12 else 0
    return named


def _complete(
    interface: Interface, values: Mapping[str, float], comments: Mapping[str, str]
) -> Interface:
    interface.alias = interface.alias or comments.get(interface.name, "")
    interface.is_up = _state(values, _UP)
    interface.is_enabled = _state(values, _ENABLED)
    speeds = (values[name] * unit for name, unit in _SPEEDS.items() if values.get(name))
    interface.bits_per_s = next((speed for speed in speeds if speed > 0), None)
    interface.counters = dict(_counters(values))
    return interface


def _state(values: Mapping[str, float], yes: Mapping[str, float]) -> bool | None:
    return next((values[name] == value for name, value in yes.items() if name in values), None)


def _counters(values: Mapping[str, float]) -> Iterator[tuple[Counted, str]]:
    for role, names in COUNTERS.items():
        name = next((each for each in names if each in values), None)
        if name is not None:
            yield role, name


_METRICS = frozenset(
    [name for names in COUNTERS.values() for name in names] + [*_UP, *_ENABLED, *_SPEEDS]
)
