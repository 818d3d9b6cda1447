"""Ports: traffic, links, optics, PoE, VLANs, tunnels, the switch chip."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    Ask,
    Family,
    Info,
    Metric,
    Row,
    Table,
    Then,
    counter,
    flag,
    same,
)

_NAME = same("name")

INTERFACES = Family(
    "interfaces",
    "traffic, errors and state of every interface",
    (
        Ask(
            "/interface",
            (
                Table(
                    labels=_NAME,
                    metrics=(
                        flag("running", "interface_running", "Does the link work?"),
                        flag("disabled", "interface_disabled", "Is it switched off?"),
                        Metric(
                            "actual-mtu",
                            "interface_actual_mtu",
                            "Largest packet it takes, in bytes",
                        ),
                        counter("rx-byte", "interface_rx_byte", "Bytes received"),
                        counter("tx-byte", "interface_tx_byte", "Bytes sent"),
                        counter("rx-packet", "interface_rx_packet", "Packets received"),
                        counter("tx-packet", "interface_tx_packet", "Packets sent"),
                        counter("rx-error", "interface_rx_error", "Packets received with errors"),
                        counter(
                            "tx-error", "interface_tx_error", "Packets not sent because of errors"
                        ),
                        counter("rx-drop", "interface_rx_drop", "Received packets dropped"),
                        counter("tx-drop", "interface_tx_drop", "Packets dropped before sending"),
                        counter("link-downs", "link_downs", "Times the link went down"),
                    ),
                    info=Info(
                        "interface_info",
                        "What the interface is",
                        same("default-name", "type", "mac-address", "comment"),
                    ),
                ),
            ),
        ),
    ),
)


def _is_ethernet(row: Row) -> bool:
    return row.get("type") == "ether"


_LINK = Table(
    labels=_NAME,
    metrics=(
        Metric(
            "status",
            "interface_status",
            "Is there a link? 1 yes, 0 no",
            parse=value_parser.is_("link-ok"),
        ),
        Metric(
            "rate", "interface_rate", "Speed of the link in Mbit/s", parse=value_parser.megabits
        ),
        Metric(
            "full-duplex",
            "interface_full_duplex",
            "Full duplex? 1 yes, 0 no",
            parse=value_parser.truth,
        ),
    ),
)

_SFP = Table(
    labels=_NAME,
    metrics=(
        Metric("sfp-supply-voltage", "interface_sfp_supply_voltage", "Supply of the module in volts",
               parse=value_parser.quantity),
        Metric("sfp-rx-power", "interface_sfp_rx_power", "Light received, in dBm", parse=value_parser.quantity),
        Metric("sfp-tx-power", "interface_sfp_tx_power", "Light sent, in dBm", parse=value_parser.quantity),
        Metric("sfp-temperature", "interface_sfp_temperature", "Temperature of the module in degrees Celsius",
               parse=value_parser.quantity),
        Metric("sfp-tx-bias-current", "interface_sfp_tx_bias_current", "Current of the laser in amperes",
               parse=value_parser.times(0.001, value_parser.quantity)),
        Metric("sfp-wavelength", "interface_sfp_wavelength", "Wavelength in nanometres", parse=value_parser.quantity),
        flag("sfp-rx-loss", "interface_sfp_rx_loss", "Is no light received?"),
        flag("sfp-tx-fault", "interface_sfp_tx_fault", "Has the transmitter failed?"),
    ),
    info=Info(
        "interface_sfp_info",
        "The module in the port",
        same("sfp-connector-type", "sfp-manufacturing-date", "sfp-type", "sfp-vendor-name", "sfp-vendor-part-number",
             "sfp-vendor-revision", "sfp-vendor-serial"),
    ),
    reshape=row_transforms.having("sfp-module-present", "true", "yes"),
    reads=("sfp-module-present",),
)  # fmt: skip

ETHERNET = Family(
    "ethernet",
    "link, speed and duplex of Ethernet ports, and their SFP modules",
    (
        Ask(
            "/interface",
            (_LINK, _SFP),
            queries=("type=ether",),
            only=_is_ethernet,
            then=Then("/interface/ethernet", "monitor", row_transforms.by_name, numbers="numbers"),
        ),
    ),
)

POE = Family(
    "poe",
    "power over Ethernet given by each port",
    (
        Ask(
            "/interface/ethernet/poe",
            (
                Table(
                    labels=_NAME,
                    metrics=(
                        Metric(
                            "poe-out-voltage",
                            "poe_out_voltage",
                            "Volts",
                            parse=value_parser.quantity,
                        ),
                        Metric(
                            "poe-out-current",
                            "poe_out_current",
                            "Milliamperes",
                            parse=value_parser.quantity,
                        ),
                        Metric(
                            "poe-out-power", "poe_out_power", "Watts", parse=value_parser.quantity
                        ),
                    ),
                    info=Info(
                        "poe_info",
                        "How the port gives power",
                        same("poe-out", "poe-priority", "poe-voltage", "poe-out-status"),
                    ),
                ),
            ),
            then=Then(
                "/interface/ethernet/poe", "monitor", row_transforms.by_name, numbers="numbers"
            ),
        ),
    ),
)

VLANS = Family(
    "vlans",
    "VLAN interfaces, and which ports carry the VLANs of a bridge",
    (
        Ask(
            "/interface/vlan",
            (
                Table(
                    labels=_NAME,
                    info=Info(
                        "interface_vlan_info", "A VLAN interface", same("vlan-id", "interface")
                    ),
                ),
            ),
        ),
        Ask(
            "/interface/bridge/vlan",
            (
                Table(
                    labels=_NAME,
                    info=Info(
                        "interface_bridge_vlan_info",
                        "Ports that carry a VLAN of a bridge",
                        same("bridge", "vlan-ids", "current-tagged", "current-untagged"),
                    ),
                    reshape=row_transforms.bridge_vlans,
                    made=("name",),
                ),
            ),
        ),
    ),
)


#: MTUs are read with the interfaces, too; here they stand beside the ends of the tunnel.
_TUNNEL = Table(
    labels=_NAME,
    metrics=(
        Metric("actual-mtu", "interface_mtu", "Largest packet the tunnel takes, in bytes"),
        Metric("l2mtu", "interface_l2mtu", "Largest frame the tunnel takes, in bytes"),
    ),
    info=Info(
        "interface_tunnel_info",
        "Ends of the tunnel",
        same("local-address", "remote-address", "mtu", "tunnel-id"),
    ),
)

TUNNELS = Family(
    "tunnels",
    "EoIP, GRE and IPIP tunnels",
    (
        Ask("/interface/eoip", (_TUNNEL,)),
        Ask("/interface/gre", (_TUNNEL,)),
        Ask("/interface/ipip", (_TUNNEL,)),
    ),
)


def _switched(property_: str, name: str, help_: str) -> Metric:
    return counter(property_, f"switch_{name}", help_, value_parser.total)


SWITCH = Family(
    "switch",
    "counters of the switch chip",
    (
        Ask(
            "/interface/ethernet/switch/port",
            (
                Table(
                    labels=_NAME,
                    metrics=(
                        _switched(
                            "driver-rx-byte", "driver_rx_byte", "Bytes received by the driver"
                        ),
                        _switched(
                            "driver-rx-packet", "driver_rx_packet", "Packets received by the driver"
                        ),
                        _switched("driver-tx-byte", "driver_tx_byte", "Bytes sent by the driver"),
                        _switched(
                            "driver-tx-packet", "driver_tx_packet", "Packets sent by the driver"
                        ),
                        _switched("rx-bytes", "rx_bytes", "Bytes received"),
                        _switched("rx-broadcast", "rx_broadcast", "Broadcast frames received"),
                        _switched("rx-pause", "rx_pause", "Pause frames received"),
                        _switched("rx-multicast", "rx_multicast", "Multicast frames received"),
                        _switched(
                            "rx-fcs-error", "rx_fcs_error", "Frames received with a wrong checksum"
                        ),
                        _switched(
                            "rx-align-error",
                            "rx_align_error",
                            "Frames received with an alignment error",
                        ),
                        _switched("rx-fragment", "rx_fragment", "Fragments received"),
                        _switched(
                            "rx-overflow", "rx_overflow", "Frames received that found no room"
                        ),
                        _switched("rx-drop", "rx_drop", "Received frames dropped"),
                        _switched("tx-bytes", "tx_bytes", "Bytes sent"),
                        _switched("tx-broadcast", "tx_broadcast", "Broadcast frames sent"),
                        _switched("tx-pause", "tx_pause", "Pause frames sent"),
                        _switched("tx-multicast", "tx_multicast", "Multicast frames sent"),
                        _switched(
                            "tx-underrun", "tx_underrun", "Frames that ran dry while they were sent"
                        ),
                        _switched("tx-collision", "tx_collision", "Frames that collided"),
                        _switched(
                            "tx-deferred",
                            "tx_deferred",
                            "Frames that had to wait before they were sent",
                        ),
                        _switched("tx-drop", "tx_drop", "Frames dropped before sending"),
                    ),
                ),
            ),
            words=("stats",),
        ),
    ),
)

FAMILIES = (INTERFACES, ETHERNET, POE, VLANS, TUNNELS, SWITCH)
