"""Radios and their clients: the wireless package, CAPsMAN, wifi since 7.13, and 60 GHz links."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.sim.hardware_model import Chassis, Feature, Kind, Port
from poller.sim.routeros.menu_tables import (
    Scene,
    Table,
    Watch,
    counted,
    dice,
    having,
    mac,
    number,
    short,
    since,
    since_boot,
    text,
    uptime,
)
from poller.sim.routeros.menus import interface_menus
from poller.sim.routeros.menus.ip_menus import client_mac


class Client(NamedTuple):
    """A station. The first clients of a router also have a DHCP lease."""

    number: int
    interface: str
    rate: float  # octets per second

    @property
    def mac(self) -> str:
        return mac(client_mac(self.number))


def _clients(kind: Kind) -> Callable[[Chassis], Sequence[Client]]:
    def rows(chassis: Chassis) -> Sequence[Client]:
        luck = dice(chassis, kind.value)
        radios = interface_menus.ports(kind)(chassis)
        per_radio = chassis.model.setup.clients
        return [
            Client(radio * per_radio + n, port.name, luck.uniform(200, 90_000))
            for radio, port in enumerate(radios)
            for n in range(1, per_radio + 1)
        ]

    return rows


def _signal(scene: Scene, client: Client) -> int:
    return -48 - client.number * 3 % 31 + round(3 * math.sin(scene.now / 45 + client.number))


def _bytes(scene: Scene, client: Client) -> str:
    """Return the octets sent and received, separated by a comma."""
    sent = counted(scene, client.rate * 3, client.number)
    received = counted(scene, client.rate, client.number)
    return f"{sent},{received}"


def _since(scene: Scene, client: Client) -> str:
    return uptime((scene.now + 400 * client.number) % 20_000)


def _packets(scene: Scene, client: Client) -> str:
    sent = counted(scene, client.rate / 300, client.number)
    received = counted(scene, client.rate / 500, client.number)
    return f"{sent},{received}"


# The wireless package


def _channel(port: Port) -> str:
    return "2437/20-Ce/gn(17dBm)" if port.index % 2 else "5180/20-Ceee/ac/P(20dBm)"


def _on(kind: Kind) -> Callable[[Scene, Port], str]:
    def value(scene: Scene, port: Port) -> str:
        return str(sum(client.interface == port.name for client in _clients(kind)(scene.chassis)))

    return value


WIRELESS = Table(
    "/interface/wireless",
    interface_menus.ports(Kind.WLAN),
    {
        **interface_menus.COMMON,
        "default-name": lambda port: port.name,
        "interface-type": text("IPQ4019"),
        "mode": text("ap-bridge"),
        "ssid": lambda port: port.alias or "office",
        "band": lambda port: "2ghz-b/g/n" if port.index % 2 else "5ghz-a/n/ac",
    },
    {"mac-address": interface_menus.address},
    where=having(Feature.WIRELESS),
    watches={
        "monitor": Watch(
            fixed={
                "status": lambda port: "running-ap" if port.up else "disabled",
                "channel": _channel,
                "wireless-protocol": text("802.11"),
            },
            live={
                "noise-floor": lambda scene, port: str(
                    -104 - (int(scene.now / 90) + port.index) % 4
                ),
                "overall-tx-ccq": lambda scene, port: str(
                    88 + (int(scene.now / 60) + port.index) % 11
                ),
                "registered-clients": _on(Kind.WLAN),
                "authenticated-clients": _on(Kind.WLAN),
            },
        )
    },
)

REGISTRATIONS = Table(
    "/interface/wireless/registration-table",
    _clients(Kind.WLAN),
    {
        ".id": number,
        "interface": lambda client: client.interface,
        "mac-address": lambda client: client.mac,
        "ap": text("false"),
        "wds": text("false"),
        "rx-rate": lambda client: f"{65 + client.number}Mbps-20MHz/1S",
        "tx-rate": lambda client: f"{130 + client.number}Mbps-20MHz/2S/SGI",
        "authentication-type": text("wpa2-psk"),
        "encryption": text("aes-ccm"),
        "last-ip": lambda client: f"10.20.0.{client.number + 10}",
    },
    {
        "packets": _packets,
        "bytes": _bytes,
        "uptime": _since,
        "last-activity": lambda scene, client: short(
            (scene.now * 100 // 1 % 300 + client.number) / 100
        ),
        "signal-strength": lambda scene, client: f"{_signal(scene, client)}@6Mbps",
        "signal-to-noise": lambda scene, client: str(_signal(scene, client) + 104),
        "tx-ccq": lambda scene, client: str(70 + (int(scene.now / 30) + client.number) % 30),
    },
    where=having(Feature.WIRELESS),
)


# CAPsMAN, in the wireless package and in wifi


class Cap(NamedTuple):
    number: int

    @property
    def mac(self) -> str:
        return mac(0x02_70_00_00_00_00 + self.number)


def _caps(chassis: Chassis) -> Sequence[Cap]:
    return [Cap(n) for n in range(1, chassis.model.setup.caps + 1)]


def _remote_caps(path: str, board: str, first: int, where: Callable[[Chassis], bool]) -> Table:
    return Table(
        path,
        lambda chassis: [Cap(cap.number + first) for cap in _caps(chassis)],
        {
            ".id": number,
            "address": lambda cap: f"{cap.mac}/0",
            "name": lambda cap: f"[{cap.mac}]",
            board: text("cAPGi-5acD2nD"),
            "serial": lambda cap: f"HF{cap.number:08d}",
            "version": text("7.18.2"),
            "identity": lambda cap: f"cap-{cap.number}",
            "base-mac": lambda cap: cap.mac,
            "state": text("Run"),
            "radios": text("2"),
        },
        where=where,
    )


CAPS = _remote_caps("/caps-man/remote-cap", "board", 0, having(Feature.WIRELESS))
WIFI_CAPS = _remote_caps("/interface/wifi/capsman/remote-cap", "board-name", 20, since(7, 13))

CAP_INTERFACES = Table(
    "/caps-man/interface",
    interface_menus.ports(Kind.CAP),
    {
        **interface_menus.COMMON,
        "configuration": text("office"),
        "current-state": lambda port: "running-ap" if port.up else "disabled",
        "current-channel": _channel,
    },
    {
        "mac-address": interface_menus.address,
        "current-registered-clients": _on(Kind.CAP),
        "current-authorized-clients": _on(Kind.CAP),
    },
    where=having(Feature.WIRELESS),
)

CAP_REGISTRATIONS = Table(
    "/caps-man/registration-table",
    _clients(Kind.CAP),
    {
        ".id": number,
        "interface": lambda client: client.interface,
        "ssid": text("office"),
        "mac-address": lambda client: client.mac,
        "tx-rate": lambda client: f"{130 + client.number}Mbps-20MHz/2S/SGI",
        "rx-rate": lambda client: f"{65 + client.number}Mbps-20MHz/1S",
        "eap-identity": text(""),
    },
    {
        "uptime": _since,
        "packets": _packets,
        "bytes": _bytes,
        "rx-signal": lambda scene, client: str(_signal(scene, client)),
    },
    where=having(Feature.WIRELESS),
)


# wifi, part of the system since 7.13

WIFI = Table(
    "/interface/wifi",
    interface_menus.ports(Kind.WIFI),
    {
        **interface_menus.COMMON,
        "default-name": lambda port: port.name,
        "configuration.ssid": text("guests"),
        "configuration.mode": text("ap"),
        "master": text("true"),
    },
    {"mac-address": interface_menus.address},
    where=since(7, 13),
    watches={
        "monitor": Watch(
            fixed={
                "state": lambda port: "running" if port.up else "disabled",
                "channel": lambda port: "5180/ax/Ceee" if port.index % 2 else "2437/ax/Ce",
                "available-channels": text("5180/ax/Ceee,2437/ax/Ce"),
            },
            live={
                "registered-peers": _on(Kind.WIFI),
                "authorized-peers": _on(Kind.WIFI),
                "tx-power": lambda scene, port: str(20 - port.index % 3),
            },
        )
    },
)

WIFI_REGISTRATIONS = Table(
    "/interface/wifi/registration-table",
    _clients(Kind.WIFI),
    {
        ".id": lambda client: f"*{0x100 + client.number:X}",
        "interface": lambda client: client.interface,
        "ssid": text("guests"),
        "mac-address": lambda client: mac(client_mac(0x100 + client.number)),
        "auth-type": text("wpa3-psk"),
        "band": text("5ghz-ax"),
        "tx-rate": lambda client: str((600 + client.number) * 1_000_000),
        "rx-rate": lambda client: str((480 + client.number) * 1_000_000),
        "authorized": text("true"),
    },
    {
        "uptime": _since,
        "last-activity": lambda scene, client: short(
            (scene.now * 100 // 1 % 300 + client.number) / 100
        ),
        "signal": lambda scene, client: str(_signal(scene, client)),
        "packets": _packets,
        "bytes": _bytes,
    },
    where=since(7, 13),
)


# 60 GHz

W60G = Table(
    "/interface/w60g",
    interface_menus.ports(Kind.W60G),
    {
        **interface_menus.COMMON,
        "default-name": lambda port: port.name,
        "mode": text("bridge"),
        "ssid": text("warehouse"),
    },
    {"mac-address": interface_menus.address},
    where=having(Feature.W60G),
    watches={
        "monitor": Watch(
            fixed={
                "name": lambda port: port.name,
                "connected": text("true"),
                "frequency": text("62640"),
                "remote-address": text("02:70:00:00:60:01"),
                "tx-mcs": text("8"),
                "tx-phy-rate": text("2310000000"),
                "tx-sector": text("28"),
                "tx-sector-info": text("left 0.4 degrees, up 0.2 degrees"),
                "distance": text("160.9m"),
            },
            live={
                "signal": lambda scene, port: str(80 + int(scene.now / 20) % 5),
                "rssi": lambda scene, port: str(-58 - int(scene.now / 25) % 4),
                "tx-packet-error-rate": lambda scene, port: f"{int(scene.now / 30) % 4}%",
                "rf-temperature": lambda scene, port: str(44 + int(since_boot(scene, 0) / 300) % 6),
                "baseband-temperature": lambda scene, port: str(
                    51 + int(since_boot(scene, 0) / 400) % 5
                ),
            },
        )
    },
)

TABLES = (
    *(WIRELESS, REGISTRATIONS, CAPS, CAP_INTERFACES, CAP_REGISTRATIONS),
    *(WIFI, WIFI_REGISTRATIONS, WIFI_CAPS, W60G),
)
