"""The demo fleet: simulated devices as ordinary inventory rows, tagged `demo`. `poller demo clear` removes them."""

from __future__ import annotations

import json
import socket
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import typer

from poller import bootstrap, errors
from poller.bootstrap import Services
from poller.cli import roles
from poller.collectors import credentials as models
from poller.db import credentials, devices, imports, targets
from poller.db.targets import Target
from poller.domain import draft
from poller.sim import fleet

TAG = "demo"
SNMP_PORT, ROUTEROS_PORT = 16161, 18728

app = typer.Typer(no_args_is_help=True, help="The simulated fleet of `poller up --demo`.")


@app.command("clear")
def clear_command() -> None:
    """Remove every device tagged `demo`, and the demo credentials."""
    removed = clear(bootstrap.services())
    typer.echo(f"removed {removed} demo devices")


def ports(services: Services) -> tuple[int, int]:
    """Where the simulator shall listen: the same place as last time, if it can."""
    last = {target.collector: target.options.get("port") for target in _targets(services)}
    snmp, routeros = int(last.get("snmp") or SNMP_PORT), int(last.get("routeros") or ROUTEROS_PORT)
    return _port(snmp, socket.SOCK_DGRAM), _port(routeros, socket.SOCK_STREAM)


def install(services: Services, count: int, snmp_port: int, routeros_port: int, interval: str = "60s") -> bool:
    """Make the inventory have exactly this demo fleet. Returns whether anything had to change."""
    rows = fleet.inventory(fleet.devices(count), snmp_port, routeros_port, interval)
    installed = services.registry.collectors  # without the extra `routeros`, its devices are left out
    wanted = [row for row in rows if row["targets"][0]["collector"] in installed]
    if _installed(services) == _essence(wanted):
        return False
    clear(services)
    for name, fields in fleet.CREDENTIALS.items():
        secret = models.from_json(json.dumps(dict(fields)))
        credentials.add(services.engine, name, secret.kind, services.keyring.seal(secret.to_json(), name))
    imports.apply_import(services.engine, [_row(services, row) for row in wanted], notify=services.notify)
    return True


def clear(services: Services) -> int:
    names = [device.name for device in devices.listing(services.engine, tag=TAG, limit=None)]
    if names:
        devices.remove(services.engine, names, services.notify)
    for name in fleet.CREDENTIALS:
        with suppress(errors.ConfigError):  # never made, or in use by somebody's own device
            credentials.remove(services.engine, name)
    return len(names)


def _port(preferred: int, kind: int) -> int:
    everywhere = "0.0.0.0"  # noqa: S104  the simulator binds this, on the loopback device only
    return preferred if roles.is_free(everywhere, preferred, kind) else roles.free_port(everywhere, kind)


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
    addresses = {device.name: device.address for device in devices.listing(services.engine, tag=TAG, limit=None)}
    return {(t.device, addresses[t.device], int(t.options.get("port", 0))) for t in _targets(services)}


def _targets(services: Services) -> list[Target]:
    names = {device.name for device in devices.listing(services.engine, tag=TAG, limit=None)}
    found = targets.listing(services.engine, limit=None) if names else []
    return [target for target in found if target.device in names]
