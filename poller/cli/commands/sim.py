"""`poller sim`: a simulated fleet on loopback, for trials, demonstrations and measurements."""

from __future__ import annotations

import datetime
import json
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from typing import Annotated

import typer

from poller import errors
from poller.domain.inventory import duration
from poller.presentation import formatting
from poller.sim import clock, fleet, fleet_server, linked_fleet
from poller.sim.fleet import Fault, Protocol, SimDevice
from poller.sim.fleet_server import Activity, Ports, TlsPorts

SNMP_PORT = 10_161
ROUTEROS_PORT = 18_728


def command(
    devices: Annotated[int, typer.Option("--devices", "-n", help="Number of devices.")] = 100,
    seed: Annotated[
        int, typer.Option(help="Seed of the fleet: the same seed gives the same fleet.")
    ] = 1,
    snmp_port: Annotated[
        int, typer.Option(min=0, max=65535, help="UDP port of all SNMP agents; 0 takes a free one.")
    ] = SNMP_PORT,
    routeros_port: Annotated[
        int,
        typer.Option(
            min=0, max=65535, help="TCP port of all RouterOS devices; 0 takes a free one."
        ),
    ] = ROUTEROS_PORT,
    faulty: Annotated[
        float, typer.Option(help="Share of the devices that are faulty, 0 to 1.")
    ] = 0.1,
    slow: Annotated[
        float, typer.Option(help="Response time of a slow device in seconds, plus or minus half.")
    ] = fleet.SLOW_SECONDS,
    interval: Annotated[
        str, typer.Option(help="Interval of the targets written with --write.")
    ] = "60s",
    write: Annotated[
        Path | None,
        typer.Option(help="Write the inventory of this fleet to a file, as JSON.", dir_okay=False),
    ] = None,
    lab: Annotated[
        int | None,
        typer.Option(help="Add a router that has every menu, with this many interfaces."),
    ] = None,
    tls_port: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=65535,
            help="TCP port of all RouterOS devices for api-ssl; 0 takes a free one.",
        ),
    ] = None,
    neighbours: Annotated[
        bool,
        typer.Option(
            "--neighbours", help="Devices tell their neighbours by LLDP: each site hangs on one."
        ),
    ] = False,
    freeze: Annotated[
        str | None,
        typer.Option(help="Stop the devices' clock at this time, as in 2026-11-16T12:00:00Z."),
    ] = None,
) -> None:
    """Run simulated SNMP and RouterOS devices on 127.20.0.1 and up, until Ctrl-C."""
    duration.parse_ms(interval)
    simulated = fleet.devices(devices, seed, faulty_share=faulty, slow_seconds=slow)
    if lab is not None:
        simulated.append(fleet.laboratory(lab, len(simulated), seed))

    if neighbours:
        simulated = linked_fleet.linked(simulated)

    def ready(ports: Ports) -> None:
        if write is not None:
            over_tls = bool(ports.routeros_tls)
            port = ports.routeros_tls or ports.routeros
            _write(write, fleet.inventory(simulated, ports.snmp, port, interval, tls=over_tls))
        for line in introduction(simulated, ports, write):
            typer.echo(line)
        sys.stdout.flush()

    tls = None if tls_port is None else TlsPorts(tls_port)
    frozen = None if freeze is None else clock.frozen(_moment(freeze))
    fleet_server.run(
        simulated,
        snmp_port,
        routeros_port,
        ready,
        status=reporter(sys.stderr.isatty()),
        tls=tls,
        clock=frozen,
    )


def introduction(devices: Sequence[SimDevice], ports: Ports, written: Path | None) -> Iterator[str]:
    """The listening ports, a sample of the devices, and commands to copy."""
    faulty = sum(device.fault is not Fault.NONE for device in devices)
    number = formatting.counted(len(devices), "simulated device")
    yield f"{number} on loopback, {faulty:,} of them faulty. Ctrl-C stops them."
    yield ""
    yield f"{'device':<14} {'address':<15} {'port':>5}  {'protocol':<9} {'model':<14} fault"

    for device in sample(devices):
        port = ports.snmp if device.protocol is Protocol.SNMP else ports.routeros
        yield (
            f"{device.name:<14} {device.address:<15} {port:>5}  "
            f"{device.protocol:<9} {device.model:<14} {device.fault}"
        )

    yield ""
    yield f"SNMP      UDP {ports.snmp:<6} community {fleet.COMMUNITY}"
    yield f"RouterOS  TCP {ports.routeros:<6} user {fleet.USERNAME}, password {fleet.PASSWORD}"

    if ports.routeros_tls:
        yield f"api-ssl   TCP {ports.routeros_tls:<6} certificate of the CA in {ports.ca_file}"
        port = ports.routeros_anonymous
        yield f"api-ssl   TCP {port:<6} no certificate: anonymous Diffie-Hellman"

    yield from _examples(devices, ports, written)


def sample(devices: Sequence[SimDevice]) -> list[SimDevice]:
    """The first device of each combination of protocol and fault."""
    first: dict[tuple[Protocol, Fault], SimDevice] = {}
    for device in devices:
        first.setdefault((device.protocol, device.fault), device)
    return sorted(first.values(), key=attrgetter("index"))


def reporter(terminal: bool) -> Callable[[Activity], None]:
    """A function that prints a status line on stderr, rewritten in place on a terminal."""
    before = Activity(0, 0, 0, 0)
    before_mono = time.monotonic()

    def report(activity: Activity) -> None:
        """Print the rates since the last report."""
        nonlocal before, before_mono

        now = time.monotonic()
        line = rates(before, activity, now - before_mono)
        before = activity
        before_mono = now
        text = f"\r\x1b[K{line}" if terminal else line
        typer.echo(text, err=True, nl=not terminal)

    return report


def rates(before: Activity, after: Activity, seconds: float) -> str:
    """The requests and replies per second between two counts."""

    def per_second(number: int) -> str:
        return f"{number / seconds:,.0f}/s"

    datagrams = per_second(after.datagrams - before.datagrams)
    replies = per_second(after.replies - before.replies)
    commands = per_second(after.commands - before.commands)

    return (
        f"SNMP {datagrams} asked, {replies} answered; "
        f"RouterOS {commands}, {after.connections:,} connections"
    )


def _moment(text: str) -> float:
    """An instant as a Unix time; UTC unless the text names a zone. Raises InvalidInput."""
    try:
        at = datetime.datetime.fromisoformat(text)
    except ValueError:
        raise errors.InvalidInput(
            f'--freeze: "{text}" is not a time', hint="give one like 2026-11-16T12:00:00Z"
        ) from None

    if at.tzinfo is None:
        at = at.replace(tzinfo=datetime.UTC)

    return at.timestamp()


def _examples(devices: Sequence[SimDevice], ports: Ports, written: Path | None) -> Iterator[str]:
    """Commands that read a healthy device, and those that import the fleet."""
    healthy = {d.protocol: d.address for d in reversed(devices) if d.fault is Fault.NONE}
    login = f"{fleet.USERNAME}:{fleet.PASSWORD}"
    agent = healthy.get(Protocol.SNMP)

    if agent:
        yield f"try: snmpbulkwalk -v2c -c {fleet.COMMUNITY} {agent}:{ports.snmp} 1.3.6.1.2.1.2"

    router = healthy.get(Protocol.ROUTEROS)
    if router:
        place = f"{router}:{ports.routeros} -o tls=false"
        if ports.routeros_tls:
            place = f"{router}:{ports.routeros_tls} -o ca_file={ports.ca_file}"
        yield f"try: echo {login} | poller collect routeros {place}"

    if written is None:
        yield (
            "The same command with --write devices.json "
            "also writes this fleet as an inventory to import."
        )
        return

    counted = formatting.counted(len(devices), "device")
    add = "poller credential add"
    yield f"The inventory of {counted} is in {written}. To poll them:"
    yield f"  echo {fleet.COMMUNITY} | {add} {fleet.SNMP_CREDENTIAL} --kind community"
    yield f"  echo {login} | {add} {fleet.ROUTEROS_CREDENTIAL} --kind login"
    yield f"  poller device import {written}"


def _write(path: Path, rows: list[dict[str, object]]) -> None:
    """Write the inventory of the fleet as JSON. Raises InvalidInput."""
    try:
        path.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")
    except OSError as error:
        raise errors.InvalidInput(
            f"--write: cannot write {path}",
            cause=error.strerror or "",
            hint="give a file in a directory you may write to",
        ) from None
