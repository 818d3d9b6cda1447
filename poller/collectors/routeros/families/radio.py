"""Families about wireless links: WLAN of both generations, CAPsMAN, 60 GHz, LTE and 5G."""

from __future__ import annotations

from poller.collectors.routeros.families import row_transforms
from poller.collectors.routeros.families.family import (
    COUNT,
    DHCP_ADDRESS,
    DHCP_NAME,
    Family,
    FollowUp,
    Info,
    Menu,
    Metric,
    Table,
    counter,
    flag,
    gauge,
    labels_from,
)
from poller.collectors.routeros.value_parser import (
    Parse,
    bits,
    is_,
    number,
    part,
    quantity,
    seconds,
)

_NAME = labels_from("name")


_WLAN = Table(
    labels=_NAME,
    metrics=(
        gauge("noise-floor", "wlan_noise_floor", "Noise in dBm", quantity),
        gauge("overall-tx-ccq", "wlan_overall_tx_ccq", "Quality of sending in percent", quantity),
        gauge("registered-clients", "wlan_registered_clients", "Clients"),
    ),
    info=Info("wlan_info", "A wireless interface", labels_from("channel")),
)

#: The newer drivers call clients peers.
_PEERS = {"registered-clients": "registered-peers"}


def _wlan(path: str, **renames: str) -> Menu:
    return Menu(path, (_WLAN,), renames=renames, follow_up=row_transforms.monitor(path))


WIRELESS = Family(
    "wireless",
    "wireless interfaces: noise, quality, number of clients",
    (
        _wlan("/interface/wifi", **_PEERS),
        _wlan("/interface/wifiwave2", **_PEERS),
        _wlan("/interface/wireless"),
    ),
)


def _clients(group: str) -> Table:
    prefix = f"{group}_clients"

    def client(property_: str, name: str, help_: str, parse: Parse = quantity) -> Metric:
        return gauge(property_, f"{prefix}_{name}", help_, parse)

    return Table(
        labels=labels_from("mac-address", "interface"),
        metrics=(
            counter("bytes", f"{prefix}_tx_bytes", "Bytes sent to the client", part(0, ",")),
            counter("bytes", f"{prefix}_rx_bytes", "Bytes received from the client", part(1, ",")),
            client("signal-strength", "signal_strength", "Signal of the client in dBm"),
            client("signal-to-noise", "signal_to_noise", "Signal above noise in dB"),
            client("tx-ccq", "tx_ccq", "Quality of sending in percent"),
            client("tx-rate", "tx_rate_bps", "Rate of sending in bit/s", bits),
            client("rx-rate", "rx_rate_bps", "Rate of receiving in bit/s", bits),
            client("uptime", "uptime_seconds", "Seconds since the client came", seconds),
        ),
        info=Info(
            f"{prefix}_devices_info",
            "A client",
            labels_from("ssid", "band", DHCP_NAME, DHCP_ADDRESS),
        ),
        computed=(DHCP_NAME, DHCP_ADDRESS),
    )


_WLAN_CLIENTS = _clients("wlan")
_SIGNAL = {"signal-strength": "signal"}

WIRELESS_CLIENTS = Family(
    "wireless_clients",
    "each client of the wireless interfaces",
    (
        Menu("/interface/wifi/registration-table", (_WLAN_CLIENTS,), renames=_SIGNAL),
        Menu("/interface/wifiwave2/registration-table", (_WLAN_CLIENTS,), renames=_SIGNAL),
        Menu("/interface/wireless/registration-table", (_WLAN_CLIENTS,)),
    ),
)

_REMOTE_CAPS = Table(
    labels=labels_from("identity", "base-mac"),
    info=Info(
        "capsman_remote_caps_info",
        "An access point that is managed",
        labels_from("version", "board"),
    ),
)

_PER_INTERFACE = Table(
    labels=labels_from("interface"),
    metrics=(gauge(COUNT, "capsman_registrations_count", "Clients of the interface"),),
    transform=row_transforms.count_by("interface"),
    computed=(COUNT,),
    sums_rows=True,
)
_CAP_CLIENTS = (_PER_INTERFACE, _clients("capsman"))

_CAP_INTERFACES = Table(
    labels=_NAME,
    metrics=(
        gauge(
            "current-registered-clients", "capsman_interface_clients", "Clients of the interface"
        ),
    ),
    info=Info(
        "capsman_interfaces_info",
        "An interface of a managed access point",
        labels_from("configuration", "mac-address", "current-state", "current-channel"),
    ),
)

_BOARD = {"board": "board-name"}
_RX_SIGNAL = {"signal-strength": "rx-signal"}

CAPSMAN = Family(
    "capsman",
    "access points managed by the router, and their clients",
    (
        Menu("/caps-man/remote-cap", (_REMOTE_CAPS,)),
        Menu("/interface/wifi/capsman/remote-cap", (_REMOTE_CAPS,), renames=_BOARD),
        Menu("/interface/wifiwave2/capsman/remote-cap", (_REMOTE_CAPS,), renames=_BOARD),
        Menu("/caps-man/registration-table", _CAP_CLIENTS, renames=_RX_SIGNAL),
        Menu("/interface/wifi/registration-table", _CAP_CLIENTS, renames=_SIGNAL),
        Menu("/interface/wifiwave2/registration-table", _CAP_CLIENTS, renames=_SIGNAL),
        Menu("/caps-man/interface", (_CAP_INTERFACES,)),
    ),
)


def _w60g_metric(property_: str, name: str, help_: str, parse: Parse = quantity) -> Metric:
    return gauge(property_, f"w60g_{name}", help_, parse)


_W60G = Table(
    labels=_NAME,
    metrics=(
        flag("connected", "w60g_connected", "Is there a link?"),
        _w60g_metric("signal", "signal", "Signal in percent"),
        _w60g_metric("rssi", "rssi", "Signal in dBm"),
        _w60g_metric("distance", "distance", "Distance of the peer in metres"),
        _w60g_metric("frequency", "frequency", "Frequency in MHz"),
        _w60g_metric("tx-mcs", "tx_mcs", "Modulation index of sending", number),
        _w60g_metric("tx-phy-rate", "tx_phy_rate", "Rate of sending in bit/s", bits),
        _w60g_metric(
            "tx-packet-error-rate", "tx_packet_error_rate", "Packets sent in vain, in percent"
        ),
        _w60g_metric("tx-sector", "tx_sector", "Sector in use", number),
        _w60g_metric(
            "rf-temperature", "rf_temperature", "Temperature of the radio in degrees Celsius"
        ),
        _w60g_metric(
            "baseband-temperature",
            "baseband_temperature",
            "Temperature of the baseband in degrees Celsius",
        ),
    ),
    info=Info("w60g_info", "A 60 GHz link", labels_from("remote-address", "tx-sector-info")),
)

W60G = Family(
    "w60g",
    "60 GHz links",
    (Menu("/interface/w60g", (_W60G,), follow_up=row_transforms.monitor("/interface/w60g")),),
)


def _lte_metric(property_: str, name: str, help_: str, parse: Parse = quantity) -> Metric:
    return gauge(property_, f"lte_{name}", help_, parse)


_LTE = Table(
    labels=_NAME,
    metrics=(
        _lte_metric("pin-status", "pin_status", "Is the PIN right? 1 yes, 0 no", is_("ok")),
        _lte_metric(
            "registration-status",
            "registration_status",
            "Is it registered? 1 yes, 0 no",
            is_("registered"),
        ),
        _lte_metric("session-uptime", "session_uptime", "Seconds since the session began", seconds),
        _lte_metric("rsrp", "rsrp", "RSRP in dBm"),
        _lte_metric("rsrq", "rsrq", "RSRQ in dB"),
        _lte_metric("sinr", "sinr", "SINR in dB"),
        _lte_metric("rssi", "rssi", "RSSI in dBm"),
        _lte_metric("nr-rsrp", "nr_rsrp", "5G: RSRP in dBm"),
        _lte_metric("nr-rsrq", "nr_rsrq", "5G: RSRQ in dB"),
        _lte_metric("nr-sinr", "nr_sinr", "5G: SINR in dB"),
    ),
    info=Info(
        "lte_current_operator_info",
        "The network it is in",
        labels_from("current-operator", "access-technology", "functionality", "subscriber-number"),
    ),
)

#: Version 6 has the command `info`, version 7 has `monitor`.
_LTE_INFO = FollowUp(
    "/interface/lte", "info", row_transforms.join_by_name, names_word="number", one_by_one=True
)

LTE = Family(
    "lte",
    "LTE and 5G modems",
    (
        Menu("/interface/lte", (_LTE,), follow_up=row_transforms.monitor("/interface/lte")),
        Menu("/interface/lte", (_LTE,), follow_up=_LTE_INFO),
    ),
)

FAMILIES = (WIRELESS, WIRELESS_CLIENTS, CAPSMAN, W60G, LTE)
