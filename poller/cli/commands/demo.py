"""The demo fleet: simulated devices as ordinary inventory rows. They are known by two marks together, the tag
`demo` and an address of the simulator's: whatever else carries the tag is somebody's own and stays.
"""

from __future__ import annotations

import ipaddress
import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

import typer

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli.arguments.confirm import Yes, confirm
from poller.cli.inventory.inventory_database import database
from poller.cli.output import render
from poller.cli.up import role_commands
from poller.collectors import credentials as models
from poller.db.inventory import credential_rows, devices, imports, sites, targets
from poller.db.inventory.devices import Device
from poller.db.inventory.targets import Target
from poller.domain.inventory import draft
from poller.presentation import formatting
from poller.sim import fleet

TAG = "demo"
#: Room for the 130,000 first devices of the simulator; `poller up` makes 100,000 at most.
NETWORK = ipaddress.ip_network(f"127.{fleet.FIRST_NETWORK}.0.0/15")
SNMP_PORT, ROUTEROS_PORT = 16161, 18728
_NAMED = 3

app = typer.Typer(no_args_is_help=True, help="The simulated fleet of `poller up --demo`.")


class Tagged(NamedTuple):
    """Devices that carry our tag: those we made, and those of others."""

    ours: list[Device]
    others: list[Device]


@app.command("clear")
def clear_command(yes: Yes = False, as_json: render.Json = False) -> None:
    """Remove the simulated devices, and the credentials and sites that came with them."""
    services = bootstrap.services()
    database(services)
    ours, others = _tagged(services)
    what = formatting.counted(len(ours), "simulated device")
    kept = f"; {_named(others)} tagged {TAG}, too, and not simulated: kept" if others else ""
    if others and ours:
        confirm(f"remove {what}{kept}", len(ours), yes)
    clear(services)
    body = {"removed": len(ours), "kept": len(others)}
    render.changed(
        f"removed {what}{kept}", "poller.demo.clear/1", body, as_json, "poller up" if ours else ""
    )


def _named(others: list[Device]) -> str:
    """`core-1 is`, `core-1, core-2, core-3 and 4 more are`."""
    names = ", ".join(device.name for device in others[:_NAMED])
    more = f" and {len(others) - _NAMED:,} more" if len(others) > _NAMED else ""
    return f"{names}{more} {'is' if len(others) == 1 else 'are'}"


def ports(services: Services) -> tuple[int, int]:
    """Where the simulator shall listen: the same place as last time, if it can."""
    last = {target.collector: target.options.get("port") for target in _targets(services)}
    snmp, routeros = int(last.get("snmp") or SNMP_PORT), int(last.get("routeros") or ROUTEROS_PORT)
    return _port(snmp, socket.SOCK_DGRAM), _port(routeros, socket.SOCK_STREAM)


def install(
    services: Services, count: int, snmp_port: int, routeros_port: int, interval: str = "60s"
) -> bool:
    """Make the inventory have exactly this demo fleet. Returns whether anything had to change."""
    rows = fleet.inventory(fleet.devices(count), snmp_port, routeros_port, interval)
    installed = (
        services.registry.collectors
    )  # without the extra `routeros`, its devices are left out
    wanted = [row for row in rows if row["targets"][0]["collector"] in installed]
    if _installed(services) == _essence(wanted):
        return False
    clear(services)
    for name, fields in fleet.CREDENTIALS.items():
        secret = models.from_json(json.dumps(dict(fields)))
        with suppress(errors.AlreadyExists):  # somebody's own device uses it, so it was not cleared
            credential_rows.add(
                services.engine, name, secret.kind, services.keyring.seal(secret.to_json(), name)
            )
    imports.apply_import(
        services.engine, [_row(services, row) for row in wanted], notify=services.notify
    )
    return True


def clear(services: Services) -> None:
    """Remove what `install` made, unless somebody else has come to use it."""
    if names := [device.name for device in _tagged(services).ours]:
        devices.remove(services.engine, names, services.notify)
    for name in fleet.CREDENTIALS:
        with suppress(errors.ConfigError):  # never made, or in use
            credential_rows.remove(services.engine, name)
    empty = [
        site.name
        for site in sites.listing(services.engine)
        if not site.devices and not site.requires
    ]
    for name in set(empty) & set(fleet.SITES):
        with suppress(errors.ConfigError):  # it just got a device
            sites.remove(services.engine, name)


def _tagged(services: Services) -> Tagged:
    found = devices.listing(services.engine, tag=TAG, limit=None)
    ours = [device for device in found if _simulated(device.address)]
    return Tagged(ours, [device for device in found if not _simulated(device.address)])


def _simulated(address: str) -> bool:
    try:
        return ipaddress.ip_address(address) in NETWORK
    except ValueError:
        return False  # a host name


def _port(preferred: int, kind: int) -> int:
    everywhere = "0.0.0.0"  # noqa: S104  the simulator binds this, on the loopback device only
    return (
        preferred
        if role_commands.is_free(everywhere, preferred, kind)
        else role_commands.free_port(everywhere, kind)
    )


def _row(services: Services, row: Mapping[str, Any]) -> imports.Row:
    device, problems = draft.device({key: value for key, value in row.items() if key != "targets"})
    drafts = []
    for fields in row["targets"]:
        target, more = draft.target(fields, lambda name, raw: _checked(services, name, raw))
        drafts.append(target)
        problems += more
    draft.raise_first(problems)
    return imports.Row(device, drafts)


def _checked(services: Services, collector: str, options: Mapping[str, Any]) -> Mapping[str, Any]:
    services.registry.options(collector, options)
    return options


def _essence(rows: list[dict[str, Any]]) -> set[tuple[str, str, int]]:
    return {(row["name"], row["address"], row["targets"][0]["options"]["port"]) for row in rows}


def _installed(services: Services) -> set[tuple[str, str, int]]:
    addresses = {device.name: device.address for device in _tagged(services).ours}
    return {
        (t.device, addresses[t.device], int(t.options.get("port", 0))) for t in _targets(services)
    }


def _targets(services: Services) -> list[Target]:
    names = {device.name for device in _tagged(services).ours}
    found = targets.listing(services.engine, limit=None) if names else []
    return [target for target in found if target.device in names]
