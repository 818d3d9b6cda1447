"""The devices of the simulated fleet: a deterministic description. Nothing is opened here.

Device n of a seed is the same in a fleet of any size.
"""

from __future__ import annotations

import enum
import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from poller import errors
from poller.sim import hardware, routerboards
from poller.sim.neighbours import Neighbour

COMMUNITY = "public"
USERNAME = "poller"
PASSWORD = "demo-only"  # noqa: S105  a demo value, valid on loopback only
OTHER_COMMUNITY = "changed-last-week"
OTHER_PASSWORD = "changed-last-week"  # noqa: S105  of a device with wrong_credentials

SNMP_CREDENTIAL = "demo-snmp"
ROUTEROS_CREDENTIAL = "demo-routeros"
# As poller.collectors.credentials.from_json expects them, but not yet encoded as JSON.
CREDENTIALS: Mapping[str, Mapping[str, str]] = {
    SNMP_CREDENTIAL: {"kind": "community", "community": COMMUNITY},
    ROUTEROS_CREDENTIAL: {"kind": "login", "username": USERNAME, "password": PASSWORD},
}

SITES = ("ams", "fra", "lon", "par", "sto", "waw")
SLOW_SECONDS = 3.0
FIRST_NETWORK = 20  # 127.20.0.1 is the first address
_HOSTS = 254  # .1 to .254
MAX_DEVICES = _HOSTS * 256 * (255 - FIRST_NETWORK)


class Protocol(enum.StrEnum):
    SNMP = "snmp"
    ROUTEROS = "routeros"


class Fault(enum.StrEnum):
    """The misbehaviour of a device."""

    NONE = "none"
    DOWN = "down"  # never answers
    SLOW = "slow"  # answers after half to one and a half times its delay
    LOSSY = "lossy"  # drops 30 % of the datagrams; stalls or resets connections
    WRONG_CREDENTIALS = "wrong_credentials"  # has another community or password than the demo
    GARBAGE = "garbage"  # answers with bytes that are not the protocol
    REBOOT = "reboot"  # uptime and counters start over every few minutes


FAULTS = tuple(fault for fault in Fault if fault is not Fault.NONE)


@dataclass(frozen=True, slots=True)
class SimDevice:
    """A simulated device. Its MAC addresses, age and traffic derive from its salt."""

    index: int
    name: str
    address: str
    protocol: Protocol
    site: str
    fault: Fault
    model: str
    variant: int
    salt: int
    slow_seconds: float = SLOW_SECONDS
    idle_seconds: float = 0.0  # an idle session is closed after this long; 0: never
    software: str = ""  # version; empty for the default of its model
    neighbours: tuple[Neighbour, ...] = ()  # what it tells by LLDP and CDP

    @property
    def community(self) -> str:
        """The community that the device accepts."""
        return OTHER_COMMUNITY if self.fault is Fault.WRONG_CREDENTIALS else COMMUNITY

    @property
    def password(self) -> str:
        """The password that the device accepts."""
        return OTHER_PASSWORD if self.fault is Fault.WRONG_CREDENTIALS else PASSWORD

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> SimDevice:
        """Rebuild a device from `dataclasses.asdict`, also after a conversion to JSON and back."""
        parsed = {
            "protocol": Protocol(fields["protocol"]),
            "fault": Fault(fields["fault"]),
            "neighbours": tuple(map(Neighbour.from_dict, fields.get("neighbours", ()))),
        }
        return cls(**{**fields, **parsed})


def devices(
    count: int,
    seed: int = 1,
    snmp_share: float = 0.8,
    faulty_share: float = 0.1,
    slow_seconds: float = SLOW_SECONDS,
) -> list[SimDevice]:
    """Return a fleet. Protocols and faults are spread evenly: even a small fleet has some of each.

    Raises InvalidInput for a count or share out of range.
    """
    _check(count, snmp_share, faulty_share, slow_seconds)
    faults = {
        Protocol.SNMP: _faults(faulty_share, first=0),
        Protocol.ROUTEROS: _faults(faulty_share, first=FAULTS.index(Fault.WRONG_CREDENTIALS)),
    }
    fleet = []
    for index in range(count):
        protocol = Protocol.ROUTEROS if _falls_on(index, 1 - snmp_share) else Protocol.SNMP
        fleet.append(_device(index, seed, protocol, next(faults[protocol]), slow_seconds))
    return fleet


def laboratory(interfaces: int = 300, index: int = 0, seed: int = 1, version: int = 7) -> SimDevice:
    """Return a router with every menu and this number of interfaces, as RouterOS 7 or 6.

    Raises InvalidInput for a number out of range.
    """
    minimum = routerboards.FEWEST_PORTS
    maximum = routerboards.MOST_PORTS
    if not minimum <= interfaces <= maximum:
        raise errors.InvalidInput(
            f"lab: {interfaces} interfaces are out of range", hint=f"give {minimum} to {maximum}"
        )
    device = _device(index, seed, Protocol.ROUTEROS, Fault.NONE, SLOW_SECONDS)
    model = f"lab6-{interfaces}" if version == 6 else f"lab-{interfaces}"
    return replace(device, name=f"lab-{device.site}-{index + 1:04d}", model=model, variant=0)


def inventory(
    devices: Sequence[SimDevice],
    snmp_port: int,
    routeros_port: int,
    interval: str = "60s",
    *,
    tls: bool = False,
) -> list[dict[str, Any]]:
    """Return the inventory rows that an operator would import to poll this fleet.

    `tls` says that the port of RouterOS is one of api-ssl, whose certificate is not checked.
    """
    routeros: dict[str, Any] = {"port": routeros_port, **_ROUTEROS_SECURITY[tls]}
    options = {
        Protocol.SNMP: {"port": snmp_port, "modules": ["system", "if_mib"]},
        Protocol.ROUTEROS: routeros,
    }
    return [_row(device, options[device.protocol], interval) for device in devices]


def address(index: int) -> str:
    """Return the address of the device at `index`: from 127.20.0.1 upwards, no .0 and no .255."""
    network, host = divmod(index, _HOSTS)
    return f"127.{FIRST_NETWORK + network // 256}.{network % 256}.{host + 1}"


def _check(count: int, snmp_share: float, faulty_share: float, slow_seconds: float) -> None:
    if not 0 <= count <= MAX_DEVICES:
        raise errors.InvalidInput(
            f"devices: {count} is out of range", hint=f"give 0 to {MAX_DEVICES}"
        )
    for name, share in (("snmp share", snmp_share), ("faulty share", faulty_share)):
        if not 0 <= share <= 1:
            raise errors.InvalidInput(
                f"{name}: {share} is not a share", hint="give a number from 0 to 1"
            )
    if not 0 <= slow_seconds <= 3600:
        raise errors.InvalidInput(
            f"slow seconds: {slow_seconds} is out of range", hint="give 0 to 3600"
        )


def _falls_on(index: int, share: float) -> bool:
    """Return True for `share` of the indexes, evenly spread. Rounds, as 0.29 * 100 is 28.999..."""
    return int(round((index + 1) * share, 6)) > int(round(index * share, 6))


def _faults(share: float, first: int) -> Iterator[Fault]:
    index, kind = 0, first
    while True:
        if _falls_on(index, share):
            yield FAULTS[kind % len(FAULTS)]
            kind += 1
        else:
            yield Fault.NONE
        index += 1


def _device(
    index: int, seed: int, protocol: Protocol, fault: Fault, slow_seconds: float
) -> SimDevice:
    salt = _salt(seed, index)
    models = _LOTS[protocol]
    model = models[salt % len(models)]
    site = SITES[(salt >> 32) % len(SITES)]
    return SimDevice(
        index=index,
        name=f"{model.prefix}-{site}-{index + 1:04d}",
        address=address(index),
        protocol=protocol,
        site=site,
        fault=fault,
        model=model.name,
        variant=(salt >> 40) % hardware.VARIANTS,
        salt=salt,
        slow_seconds=slow_seconds,
    )


def _salt(seed: int, index: int) -> int:
    digest = hashlib.blake2b(f"{seed}:{index}".encode(), digest_size=8).digest()
    return int.from_bytes(digest, "big") >> 1  # 63 bits: fits everywhere


def _row(device: SimDevice, options: Mapping[str, Any], interval: str) -> dict[str, Any]:
    snmp = device.protocol is Protocol.SNMP
    return {
        "name": device.name,
        "address": device.address,
        "site": device.site,
        "tags": ["demo"],
        "credential": SNMP_CREDENTIAL if snmp else ROUTEROS_CREDENTIAL,
        "targets": [
            {"collector": device.protocol.value, "options": dict(options), "interval": interval}
        ],
    }


#: The options of RouterOS targets with and without TLS.
_ROUTEROS_SECURITY = {True: {"insecure": True}, False: {"tls": False}}
_LOTS = {
    Protocol.SNMP: [m for m in hardware.SNMP_MODELS for _ in range(m.weight)],
    Protocol.ROUTEROS: [m for m in hardware.ROUTEROS_MODELS for _ in range(m.weight)],
}
