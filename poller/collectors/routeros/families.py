"""What can be read from a router: each family is a table of menu, labels and properties. No code here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from poller.collectors.routeros import values
from poller.domain.readings import Kind

Parse = Callable[[str], float | None]


@dataclass(frozen=True, slots=True)
class Property:
    """A property of a menu that becomes a metric."""

    name: str
    metric: str
    help: str
    kind: Kind = Kind.GAUGE
    parse: Parse = values.number


@dataclass(frozen=True, slots=True)
class Family:
    """One menu. `labels` go on every metric of a row, `info` only on the one metric that describes the row."""

    name: str
    path: str
    properties: tuple[Property, ...]
    info_metric: str
    info_help: str
    info: Mapping[str, str]  # label to property
    labels: Mapping[str, str] = field(default_factory=dict)  # label to property

    def proplist(self) -> str:
        """What to ask for: the router computes nothing else."""
        names = [*self.labels.values(), *self.info.values(), *(item.name for item in self.properties)]
        return ",".join(dict.fromkeys(names))


def _counter(name: str, metric: str, help_: str) -> Property:
    return Property(name, metric, help_, Kind.COUNTER)


RESOURCE = Family(
    name="resource",
    path="/system/resource",
    properties=(
        Property("uptime", "routeros_system_uptime", "Seconds since the router started", parse=values.seconds),
        Property("free-memory", "routeros_system_free_memory", "Free memory in bytes"),
        Property("total-memory", "routeros_system_total_memory", "Memory in bytes"),
        Property("free-hdd-space", "routeros_system_free_hdd_space", "Free storage in bytes"),
        Property("total-hdd-space", "routeros_system_total_hdd_space", "Storage in bytes"),
        Property("cpu-load", "routeros_system_cpu_load", "Processor load in percent"),
        Property("cpu-count", "routeros_system_cpu_count", "Number of processors"),
        Property("cpu-frequency", "routeros_system_cpu_frequency", "Processor clock in MHz"),
        Property("bad-blocks", "routeros_system_bad_blocks", "Bad blocks of the storage in percent"),
    ),
    info_metric="routeros_system_info",
    info_help="What the router is: hardware and software",
    info={
        "version": "version",
        "board_name": "board-name",
        "platform": "platform",
        "architecture_name": "architecture-name",
        "cpu": "cpu",
    },
)

INTERFACES = Family(
    name="interfaces",
    path="/interface",
    labels={"name": "name"},
    properties=(
        Property("running", "routeros_interface_running", "Does the link work? 1 yes, 0 no", parse=values.truth),
        Property("disabled", "routeros_interface_disabled", "Is it switched off? 1 yes, 0 no", parse=values.truth),
        Property("actual-mtu", "routeros_interface_actual_mtu", "Largest packet it takes, in bytes"),
        _counter("rx-byte", "routeros_interface_rx_byte", "Bytes received"),
        _counter("tx-byte", "routeros_interface_tx_byte", "Bytes sent"),
        _counter("rx-packet", "routeros_interface_rx_packet", "Packets received"),
        _counter("tx-packet", "routeros_interface_tx_packet", "Packets sent"),
        _counter("rx-error", "routeros_interface_rx_error", "Packets received with errors"),
        _counter("tx-error", "routeros_interface_tx_error", "Packets not sent because of errors"),
        _counter("rx-drop", "routeros_interface_rx_drop", "Received packets dropped"),
        _counter("tx-drop", "routeros_interface_tx_drop", "Packets dropped before sending"),
        _counter("link-downs", "routeros_interface_link_downs", "Times the link went down"),
    ),
    info_metric="routeros_interface_info",
    info_help="What the interface is",
    info={
        "default_name": "default-name",
        "type": "type",
        "mac_address": "mac-address",
        "comment": "comment",
    },
)

FAMILIES: Mapping[str, Family] = {family.name: family for family in (RESOURCE, INTERFACES)}


def help_texts(family: Family) -> dict[str, str]:
    return {family.info_metric: family.info_help, **{item.metric: item.help for item in family.properties}}
