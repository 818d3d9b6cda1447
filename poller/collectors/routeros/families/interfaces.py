"""Families about ports: traffic, links, optics, PoE, VLANs, tunnels, the switch chip."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    Family,
    Info,
    Menu,
    Metric,
    Row,
    Table,
    counter,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import is_, megabits, quantity, times, total, truth

_NAME = labels_from("name")


_INTERFACES = Table(
    labels=_NAME,
    metrics=(
        flag("running", "interface_running", "Does the link work?"),
        flag("disabled", "interface_disabled", "Is it switched off?"),
        gauge("actual-mtu", "interface_actual_mtu", "Largest packet it takes, in bytes"),
        counter("rx-byte", "interface_rx_byte", "Bytes received"),
        counter("tx-byte", "interface_tx_byte", "Bytes sent"),
        counter("rx-packet", "interface_rx_packet", "Packets received"),
        counter("tx-packet", "interface_tx_packet", "Packets sent"),
        counter("rx-error", "interface_rx_error", "Packets received with errors"),
        counter("tx-error", "interface_tx_error", "Packets not sent because of errors"),
        counter("rx-drop", "interface_rx_drop", "Received packets dropped"),
        counter("tx-drop", "interface_tx_drop", "Packets dropped before sending"),
        counter("link-downs", "link_downs", "Times the link went down"),
    ),
    info=Info(
        "interface_info",
        "What the interface is",
        labels_from("default-name", "type", "mac-address", "comment"),
    ),
)

INTERFACES = Family(
    "interfaces",
    "traffic, errors and state of every interface",
    (Menu("/interface", (_INTERFACES,)),),
)


def _is_ethernet(row: Row) -> bool:
    return row.get("type") == "ether"


_LINK = Table(
    labels=_NAME,
    metrics=(
        gauge("status", "interface_status", "Is there a link? 1 yes, 0 no", is_("link-ok")),
        gauge("rate", "interface_rate", "Speed of the link in Mbit/s", megabits),
        gauge("full-duplex", "interface_full_duplex", "Full duplex? 1 yes, 0 no", truth),
    ),
)


def _sfp(property_: str, name: str, help_: str) -> Metric:
    return gauge(f"sfp-{property_}", f"interface_sfp_{name}", help_, quantity)


_SFP = Table(
    labels=_NAME,
    metrics=(
        _sfp("supply-voltage", "supply_voltage", "Supply of the module in volts"),
        _sfp("rx-power", "rx_power", "Light received, in dBm"),
        _sfp("tx-power", "tx_power", "Light sent, in dBm"),
        _sfp("temperature", "temperature", "Temperature of the module in degrees Celsius"),
        gauge(
            "sfp-tx-bias-current",
            "interface_sfp_tx_bias_current",
            "Current of the laser in amperes",
            times(0.001, quantity),
        ),
        _sfp("wavelength", "wavelength", "Wavelength in nanometres"),
        flag("sfp-rx-loss", "interface_sfp_rx_loss", "Is no light received?"),
        flag("sfp-tx-fault", "interface_sfp_tx_fault", "Has the transmitter failed?"),
    ),
    info=Info(
        "interface_sfp_info",
        "The module in the port",
        labels_from(
            "sfp-connector-type",
            "sfp-manufacturing-date",
            "sfp-type",
            "sfp-vendor-name",
            "sfp-vendor-part-number",
            "sfp-vendor-revision",
            "sfp-vendor-serial",
        ),
    ),
    transform=row_transforms.only_where("sfp-module-present", "true", "yes"),
    transform_inputs=("sfp-module-present",),
)

ETHERNET = Family(
    "ethernet",
    "link, speed and duplex of Ethernet ports, and their SFP modules",
    (
        Menu(
            "/interface",
            (_LINK, _SFP),
            queries=("type=ether",),
            row_filter=_is_ethernet,
            follow_up=row_transforms.monitor("/interface/ethernet"),
        ),
    ),
)

_POE = Table(
    labels=_NAME,
    metrics=(
        gauge("poe-out-voltage", "poe_out_voltage", "Volts", quantity),
        gauge("poe-out-current", "poe_out_current", "Milliamperes", quantity),
        gauge("poe-out-power", "poe_out_power", "Watts", quantity),
    ),
    info=Info(
        "poe_info",
        "How the port gives power",
        labels_from("poe-out", "poe-priority", "poe-voltage", "poe-out-status"),
    ),
)

POE = Family(
    "poe",
    "power over Ethernet that each port supplies",
    (
        Menu(
            "/interface/ethernet/poe",
            (_POE,),
            follow_up=row_transforms.monitor("/interface/ethernet/poe"),
        ),
    ),
)

_VLANS = Table(
    labels=_NAME,
    info=Info("interface_vlan_info", "A VLAN interface", labels_from("vlan-id", "interface")),
)

_BRIDGE_VLANS = Table(
    labels=_NAME,
    info=Info(
        "interface_bridge_vlan_info",
        "Ports that carry a VLAN of a bridge",
        labels_from("bridge", "vlan-ids", "current-tagged", "current-untagged"),
    ),
    transform=row_transforms.name_bridge_vlans,
    computed=("name",),
)

VLANS = Family(
    "vlans",
    "VLAN interfaces, and which ports carry the VLANs of a bridge",
    (Menu("/interface/vlan", (_VLANS,)), Menu("/interface/bridge/vlan", (_BRIDGE_VLANS,))),
)

#: The family `interfaces` reads MTUs, too; here they are beside the ends of the tunnel.
_TUNNEL = Table(
    labels=_NAME,
    metrics=(
        gauge("actual-mtu", "interface_mtu", "Largest packet the tunnel takes, in bytes"),
        gauge("l2mtu", "interface_l2mtu", "Largest frame the tunnel takes, in bytes"),
    ),
    info=Info(
        "interface_tunnel_info",
        "Ends of the tunnel",
        labels_from("local-address", "remote-address", "mtu", "tunnel-id"),
    ),
)

TUNNELS = Family(
    "tunnels",
    "EoIP, GRE and IPIP tunnels",
    (
        Menu("/interface/eoip", (_TUNNEL,)),
        Menu("/interface/gre", (_TUNNEL,)),
        Menu("/interface/ipip", (_TUNNEL,)),
    ),
)


def _switched(property_: str, name: str, help_: str) -> Metric:
    return counter(property_, f"switch_{name}", help_, total)


_SWITCH = Table(
    labels=_NAME,
    metrics=(
        _switched("driver-rx-byte", "driver_rx_byte", "Bytes received by the driver"),
        _switched("driver-rx-packet", "driver_rx_packet", "Packets received by the driver"),
        _switched("driver-tx-byte", "driver_tx_byte", "Bytes sent by the driver"),
        _switched("driver-tx-packet", "driver_tx_packet", "Packets sent by the driver"),
        _switched("rx-bytes", "rx_bytes", "Bytes received"),
        _switched("rx-broadcast", "rx_broadcast", "Broadcast frames received"),
        _switched("rx-pause", "rx_pause", "Pause frames received"),
        _switched("rx-multicast", "rx_multicast", "Multicast frames received"),
        _switched("rx-fcs-error", "rx_fcs_error", "Frames received with a wrong checksum"),
        _switched("rx-align-error", "rx_align_error", "Frames received with an alignment error"),
        _switched("rx-fragment", "rx_fragment", "Fragments received"),
        _switched("rx-overflow", "rx_overflow", "Frames received that found no room"),
        _switched("rx-drop", "rx_drop", "Received frames dropped"),
        _switched("tx-bytes", "tx_bytes", "Bytes sent"),
        _switched("tx-broadcast", "tx_broadcast", "Broadcast frames sent"),
        _switched("tx-pause", "tx_pause", "Pause frames sent"),
        _switched("tx-multicast", "tx_multicast", "Multicast frames sent"),
        _switched("tx-underrun", "tx_underrun", "Frames that ran dry while they were sent"),
        _switched("tx-collision", "tx_collision", "Frames that collided"),
        _switched("tx-deferred", "tx_deferred", "Frames that had to wait before they were sent"),
        _switched("tx-drop", "tx_drop", "Frames dropped before sending"),
    ),
)

SWITCH = Family(
    "switch",
    "counters of the switch chip",
    (Menu("/interface/ethernet/switch/port", (_SWITCH,), words=("stats",)),),
)

FAMILIES = (INTERFACES, ETHERNET, POE, VLANS, TUNNELS, SWITCH)
