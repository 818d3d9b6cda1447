"""The demo fleet: simulated devices as ordinary inventory rows.

A device belongs to the demo fleet if it has the tag `demo` and an address of the simulator. Other
devices with that tag are the operator's own and stay.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.bootstrap import Services
from poller.cli.up import listen_ports
from poller.collectors import credentials as models
from poller.db.inventory import (
    credential_rows,
    devices,
    filter_conditions,
    imports,
    sites,
    targets,
)
from poller.db.inventory.devices import Device
from poller.db.inventory.inventory_feed import Author
from poller.db.inventory.targets import Target
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.inventory import draft
from poller.domain.inventory.target_filter import TargetFilter
from poller.sim import fleet

TAG = "demo"
#: The addresses of the first 130,000 simulated devices; `poller up` makes at most 100,000.
NETWORK = ipaddress.ip_network(f"127.{fleet.FIRST_NETWORK}.0.0/15")
SNMP_PORT = 16161
ROUTEROS_PORT = 18728  # the plain API, for plugins and for curious people
ROUTEROS_TLS_PORT = 18729

Essence = set[tuple[str, str, int, bool]]  # name, address and port of each device, and plain API


@dataclass(frozen=True, slots=True)
class Ports:
    snmp: int
    routeros: int
    routeros_tls: int


@dataclass(frozen=True, slots=True)
class Tagged:
    """The devices with the demo tag: simulated ones, and others."""

    simulated: list[Device]
    others: list[Device]


def ports(services: Services) -> Ports:
    """The ports for the simulator: those of the last time if they are free."""
    encrypted = [target for target in _targets(services) if not _is_plain(target.options)]
    last = {target.collector: target.options.get("port") for target in encrypted}
    snmp = int(last.get("snmp") or SNMP_PORT)
    routeros_tls = int(last.get("routeros") or ROUTEROS_TLS_PORT)
    return Ports(
        snmp=_port(snmp, socket.SOCK_DGRAM),
        routeros=_port(ROUTEROS_PORT, socket.SOCK_STREAM),
        routeros_tls=_port(routeros_tls, socket.SOCK_STREAM),
    )


def _is_plain(options: Mapping[str, Any]) -> bool:
    """Whether a target of an earlier demo fleet speaks the plain API of RouterOS."""
    return options.get("tls") is False


def install(services: Services, count: int, ports: Ports, interval: str = "60s") -> bool:
    """Make the inventory hold exactly this demo fleet. Returns whether anything changed."""
    simulated = fleet.devices(count)
    rows = fleet.inventory(simulated, ports.snmp, ports.routeros_tls, interval, tls=True)
    # Without the extra `routeros` its devices are left out.
    installed = services.registry.collectors
    rows = [row for row in rows if row["targets"][0]["collector"] in installed]

    if _installed(services) == _essence(rows):
        return False

    _refuse_taken(services, [row["name"] for row in rows])
    clear(services)
    for name, fields in fleet.CREDENTIALS.items():
        secret = models.from_json(json.dumps(dict(fields)))
        sealed = services.keyring.seal(secret.to_json(), name, secret.kind)
        with suppress(errors.AlreadyExists):  # a device outside the fleet uses it
            credential_rows.add(services.engine, name, secret.kind, sealed, _author(services))

    drafts = [_row(services, row) for row in rows]
    imports.apply_import(services.engine, drafts, author=_author(services))
    return True


def _refuse_taken(services: Services, names: Sequence[str]) -> None:
    """Raise AlreadyExists for a device that has the name of a simulated one, and not its tag."""
    own = {device.name for device in tagged(services).simulated}
    for name in imports.existing_devices(services.engine, names):
        if name not in own:
            raise errors.AlreadyExists(
                f'name: there is a device "{name}" that is not of the demo',
                cause=f'it has a name of the demo and not its tag "{TAG}", or another address',
                hint=f"poller device edit {name} --add-tag {TAG}, if the demo made it; "
                f"or poller device rm {name}",
            )


def _author(services: Services) -> Author:
    return Author(Actor("demo", ActorKind.SYSTEM, socket.gethostname()), services.notify)


def clear(services: Services) -> None:
    """Remove everything `install` made, except credentials and sites that are in use."""
    names = [device.name for device in tagged(services).simulated]
    if names:
        devices.remove(services.engine, names, _author(services))

    for name in fleet.CREDENTIALS:
        with suppress(errors.ConfigError):  # never made, or in use
            credential_rows.remove(services.engine, name, _author(services))

    for site in sites.listing(services.engine):
        unused = not site.devices and not site.requires
        if unused and site.name in fleet.SITES:
            with suppress(errors.ConfigError):  # it got a device meanwhile
                sites.remove(services.engine, site.name, _author(services))


def tagged(services: Services) -> Tagged:
    """The devices with the demo tag, simulated ones apart from others."""
    found = Tagged([], [])
    matching = filter_conditions.matching_devices(services.engine, TargetFilter(tags=(TAG,)))
    ids = [device.id for device in matching]
    for device in devices.listing(services.engine, ids=ids, limit=None):
        group = found.simulated if _is_simulated(device.address) else found.others
        group.append(device)
    return found


def _is_simulated(address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in NETWORK
    except ValueError:
        return False  # a host name


def _port(preferred: int, kind: int) -> int:
    """The preferred port if it is free, else any free port."""
    everywhere = "0.0.0.0"  # noqa: S104  the simulator binds this, on the loopback device only
    if listen_ports.is_free(everywhere, preferred, kind):
        return preferred
    return listen_ports.free_port(everywhere, kind)


def _row(services: Services, row: Mapping[str, Any]) -> imports.Row:
    """The checked row of a simulated device. Raises InvalidInput."""

    def checked(collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
        services.registry.options(collector, options)
        return options

    fields = {key: value for key, value in row.items() if key != "targets"}
    device, problems = draft.device(fields)

    drafts = []
    for target_fields in row["targets"]:
        target, more = draft.target(target_fields, checked)
        drafts.append(target)
        problems += more

    draft.raise_first(problems)
    return imports.Row(device, drafts)


def _essence(rows: list[dict[str, Any]]) -> Essence:
    essence = set()
    for row in rows:
        options = row["targets"][0]["options"]
        essence.add((row["name"], row["address"], options["port"], _is_plain(options)))
    return essence


def _installed(services: Services) -> Essence:
    addresses = {device.name: device.address for device in tagged(services).simulated}
    essence = set()
    for target in _targets(services):
        port = int(target.options.get("port", 0))
        plain = _is_plain(target.options)
        essence.add((target.device, addresses[target.device], port, plain))
    return essence


def _targets(services: Services) -> list[Target]:
    """The targets of the simulated devices."""
    simulated = tagged(services).simulated
    names = {device.name for device in simulated}
    if not names:
        return []
    return [
        target for target in targets.listing(services.engine, limit=None) if target.device in names
    ]
