"""Without wires: WLAN of both generations, CAPsMAN, 60 GHz, LTE and 5G."""

from __future__ import annotations

from poller.collectors.routeros import value_parser
from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    DHCP_ADDRESS,
    DHCP_NAME,
    Ask,
    Family,
    Info,
    Metric,
    Table,
    Then,
    counter,
    flag,
    same,
)

_NAME = same("name")


def _monitored(path: str) -> Then:
    return Then(path, "monitor", row_transforms.by_name, numbers="numbers")


_WLAN = Table(
    labels=same("name"),
    metrics=(
        Metric("noise-floor", "wlan_noise_floor", "Noise in dBm", parse=value_parser.quantity),
        Metric(
            "overall-tx-ccq",
            "wlan_overall_tx_ccq",
            "Quality of sending in percent",
            parse=value_parser.quantity,
        ),
        Metric("registered-clients", "wlan_registered_clients", "Clients"),
    ),
    info=Info("wlan_info", "A wireless interface", same("channel")),
)

#: The newer drivers say peers for clients.
_PEERS = {"registered-clients": "registered-peers"}

WIRELESS = Family(
    "wireless",
    "wireless interfaces: noise, quality, number of clients",
    (
        Ask("/interface/wifi", (_WLAN,), called=_PEERS, then=_monitored("/interface/wifi")),
        Ask(
            "/interface/wifiwave2", (_WLAN,), called=_PEERS, then=_monitored("/interface/wifiwave2")
        ),
        Ask("/interface/wireless", (_WLAN,), then=_monitored("/interface/wireless")),
    ),
)


def _clients(prefix: str) -> Table:
    def metric(property_: str, name: str, help_: str, parse: value_parser.Parse) -> Metric:
        return Metric(property_, f"{prefix}_clients_{name}", help_, parse=parse)

    return Table(
        labels=same("mac-address", "interface"),
        metrics=(
            counter(
                "bytes",
                f"{prefix}_clients_tx_bytes",
                "Bytes sent to the client",
                value_parser.part(0, ","),
            ),
            counter(
                "bytes",
                f"{prefix}_clients_rx_bytes",
                "Bytes received from the client",
                value_parser.part(1, ","),
            ),
            metric(
                "signal-strength",
                "signal_strength",
                "Signal of the client in dBm",
                value_parser.quantity,
            ),
            metric(
                "signal-to-noise",
                "signal_to_noise",
                "Signal above noise in dB",
                value_parser.quantity,
            ),
            metric("tx-ccq", "tx_ccq", "Quality of sending in percent", value_parser.quantity),
            metric("tx-rate", "tx_rate_bps", "Rate of sending in bit/s", value_parser.bits),
            metric("rx-rate", "rx_rate_bps", "Rate of receiving in bit/s", value_parser.bits),
            metric(
                "uptime", "uptime_seconds", "Seconds since the client came", value_parser.seconds
            ),
        ),
        info=Info(
            f"{prefix}_clients_devices_info",
            "A client",
            same("ssid", "band", DHCP_NAME, DHCP_ADDRESS),
        ),
        made=(DHCP_NAME, DHCP_ADDRESS),
    )


_WLAN_CLIENTS, _CAPSMAN_CLIENTS = _clients("wlan"), _clients("capsman")
_PER_INTERFACE = Table(
    labels=same("interface"),
    metrics=(Metric(COUNT, "capsman_registrations_count", "Clients of the interface"),),
    reshape=row_transforms.counted("interface"),
    made=(COUNT,),
    adds_up=True,
)
_SIGNAL = {"signal-strength": "signal"}
_RX_SIGNAL = {"signal-strength": "rx-signal"}
_BOARD = {"board": "board-name"}

WIRELESS_CLIENTS = Family(
    "wireless_clients",
    "each client of the wireless interfaces",
    (
        Ask("/interface/wifi/registration-table", (_WLAN_CLIENTS,), called=_SIGNAL),
        Ask("/interface/wifiwave2/registration-table", (_WLAN_CLIENTS,), called=_SIGNAL),
        Ask("/interface/wireless/registration-table", (_WLAN_CLIENTS,)),
    ),
)

_REMOTE_CAPS = Table(
    labels=same("identity", "base-mac"),
    info=Info(
        "capsman_remote_caps_info", "An access point that is managed", same("version", "board")
    ),
)

_CAP_INTERFACES = Table(
    labels=_NAME,
    metrics=(
        Metric(
            "current-registered-clients", "capsman_interface_clients", "Clients of the interface"
        ),
    ),
    info=Info(
        "capsman_interfaces_info",
        "An interface of a managed access point",
        same("configuration", "mac-address", "current-state", "current-channel"),
    ),
)

CAPSMAN = Family(
    "capsman",
    "access points managed by the router, and their clients",
    (
        Ask("/caps-man/remote-cap", (_REMOTE_CAPS,)),
        Ask("/interface/wifi/capsman/remote-cap", (_REMOTE_CAPS,), called=_BOARD),
        Ask("/interface/wifiwave2/capsman/remote-cap", (_REMOTE_CAPS,), called=_BOARD),
        Ask("/caps-man/registration-table", (_PER_INTERFACE, _CAPSMAN_CLIENTS), called=_RX_SIGNAL),
        Ask(
            "/interface/wifi/registration-table", (_PER_INTERFACE, _CAPSMAN_CLIENTS), called=_SIGNAL
        ),
        Ask(
            "/interface/wifiwave2/registration-table",
            (_PER_INTERFACE, _CAPSMAN_CLIENTS),
            called=_SIGNAL,
        ),
        Ask("/caps-man/interface", (_CAP_INTERFACES,)),
    ),
)

W60G = Family(
    "w60g",
    "60 GHz links",
    (
        Ask(
            "/interface/w60g",
            (
                Table(
                    labels=_NAME,
                    metrics=(
                        flag("connected", "w60g_connected", "Is there a link?"),
                        Metric("signal", "w60g_signal", "Signal in percent", parse=value_parser.quantity),
                        Metric("rssi", "w60g_rssi", "Signal in dBm", parse=value_parser.quantity),
                        Metric("distance", "w60g_distance", "Distance of the peer in metres", parse=value_parser.quantity),
                        Metric("frequency", "w60g_frequency", "Frequency in MHz", parse=value_parser.quantity),
                        Metric("tx-mcs", "w60g_tx_mcs", "Modulation index of sending"),
                        Metric("tx-phy-rate", "w60g_tx_phy_rate", "Rate of sending in bit/s", parse=value_parser.bits),
                        Metric("tx-packet-error-rate", "w60g_tx_packet_error_rate", "Packets sent in vain, in percent",
                               parse=value_parser.quantity),
                        Metric("tx-sector", "w60g_tx_sector", "Sector in use"),
                        Metric("rf-temperature", "w60g_rf_temperature", "Temperature of the radio in degrees Celsius",
                               parse=value_parser.quantity),
                        Metric("baseband-temperature", "w60g_baseband_temperature",
                               "Temperature of the baseband in degrees Celsius", parse=value_parser.quantity),
                    ),
                    info=Info("w60g_info", "A 60 GHz link", same("remote-address", "tx-sector-info")),
                ),
            ),
            then=_monitored("/interface/w60g"),
        ),
    ),
)  # fmt: skip


def _lte(
    property_: str, name: str, help_: str, parse: value_parser.Parse = value_parser.quantity
) -> Metric:
    return Metric(property_, f"lte_{name}", help_, parse=parse)


_LTE = Table(
    labels=_NAME,
    metrics=(
        _lte("pin-status", "pin_status", "Is the PIN right? 1 yes, 0 no", value_parser.is_("ok")),
        _lte(
            "registration-status",
            "registration_status",
            "Is it registered? 1 yes, 0 no",
            value_parser.is_("registered"),
        ),
        _lte(
            "session-uptime",
            "session_uptime",
            "Seconds since the session began",
            value_parser.seconds,
        ),
        _lte("rsrp", "rsrp", "RSRP in dBm"),
        _lte("rsrq", "rsrq", "RSRQ in dB"),
        _lte("sinr", "sinr", "SINR in dB"),
        _lte("rssi", "rssi", "RSSI in dBm"),
        _lte("nr-rsrp", "nr_rsrp", "5G: RSRP in dBm"),
        _lte("nr-rsrq", "nr_rsrq", "5G: RSRQ in dB"),
        _lte("nr-sinr", "nr_sinr", "5G: SINR in dB"),
    ),
    info=Info(
        "lte_current_operator_info",
        "The network it is in",
        same("current-operator", "access-technology", "functionality", "subscriber-number"),
    ),
)

#: Version 6 says `info` where version 7 says `monitor`.
_LTE_INFO = Then(
    "/interface/lte", "info", row_transforms.by_name, numbers="number", one_by_one=True
)

LTE = Family(
    "lte",
    "LTE and 5G modems",
    (
        Ask("/interface/lte", (_LTE,), then=_monitored("/interface/lte")),
        Ask("/interface/lte", (_LTE,), then=_LTE_INFO),
    ),
)

FAMILIES = (WIRELESS, WIRELESS_CLIENTS, CAPSMAN, W60G, LTE)
