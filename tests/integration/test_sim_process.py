"""The simulator as a process: ready when it reports so, stopped on request, and clear about ports
in use.
"""

from __future__ import annotations

import asyncio
import dataclasses
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import typer
from gufo.snmp import sync as gufo

from poller import errors
from poller.cli.commands import sim as cli
from poller.sim import fleet, fleet_server, sim_process, sockets
from poller.sim.fleet_server import Activity, Ports
from poller.sim.sim_process import simulated

SYS_NAME = "1.3.6.1.2.1.1.5.0"
DEVICES = fleet.devices(30, faulty_share=0)
SNMP, ROUTER = DEVICES[0], DEVICES[4]


def name_of(device: fleet.SimDevice, port: int, timeout: float = 2.0) -> bytes:
    client = gufo.SnmpSession(
        addr=device.address, port=port, community=fleet.COMMUNITY, timeout=timeout
    )
    return bytes(client.get(SYS_NAME))


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


def test_two_fleets_side_by_side() -> None:
    """Two simulators take different free ports, respond separately, and leave no process."""
    with simulated(DEVICES) as one, simulated(DEVICES) as two:
        assert one.snmp != two.snmp
        assert name_of(SNMP, one.snmp) == name_of(SNMP, two.snmp) == SNMP.name.encode()
    assert not alive(one.pid)
    assert not alive(two.pid)


def test_a_restarted_fleet_carries_on() -> None:
    """Counters and uptime continue after a restart of the simulator, as if the devices never
    stopped.
    """
    uptimes = []
    for _ in range(2):
        with simulated(DEVICES) as ports:
            client = gufo.SnmpSession(addr=SNMP.address, port=ports.snmp, community=fleet.COMMUNITY)
            uptimes.append(client.get("1.3.6.1.2.1.1.3.0"))
    assert 0 < uptimes[1] - uptimes[0] < 6000


def responds(device: fleet.SimDevice, port: int) -> bool:
    """Return whether a new connection to a router gets a reply."""
    with socket.create_connection((device.address, port), timeout=1) as connection:
        connection.settimeout(0.3)
        connection.sendall(b"\x06/login\x00")
        try:
            return connection.recv(6) == b"\x05!done"
        except TimeoutError:
            return False


def test_a_site_goes_dark_and_comes_back() -> None:
    """Devices of a dark site are silent in every protocol while the other site responds; later all
    respond.
    """
    far, near = (
        dataclasses.replace(SNMP, site="far"),
        dataclasses.replace(DEVICES[1], site="near"),
    )
    far_router, near_router = (
        dataclasses.replace(ROUTER, site="far"),
        dataclasses.replace(DEVICES[9], site="near"),
    )
    assert near_router.protocol is fleet.Protocol.ROUTEROS
    with simulated([far, near, far_router, near_router]) as ports:
        ports.darken("far")
        with pytest.raises(TimeoutError):
            name_of(far, ports.snmp, timeout=0.3)
        assert name_of(near, ports.snmp) == near.name.encode()
        assert [responds(router, ports.routeros) for router in (far_router, near_router)] == [
            False,
            True,
        ]
        ports.darken()
        assert name_of(far, ports.snmp) == far.name.encode()
        assert responds(far_router, ports.routeros)


def test_a_connection_that_was_open_falls_silent_with_its_site() -> None:
    """A connection falls silent as behind a cut uplink: no reset, no end, no reply."""
    with (
        simulated([ROUTER]) as ports,
        socket.create_connection((ROUTER.address, ports.routeros)) as connection,
    ):
        connection.settimeout(2)
        connection.sendall(b"\x06/login\x00")
        assert connection.recv(100).startswith(b"\x05!done")
        ports.darken(ROUTER.site)
        connection.settimeout(0.3)
        connection.sendall(b"\x06/login\x00")
        with pytest.raises(TimeoutError):
            connection.recv(100)


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_a_port_in_use_is_named(kind: int) -> None:
    """The error names the port, its protocol and a remedy."""
    with socket.socket(socket.AF_INET, kind) as other:
        other.bind(("127.0.0.1", 0))
        if kind == socket.SOCK_STREAM:
            other.listen()
        port = other.getsockname()[1]
        ports = {"snmp_port": port} if kind == socket.SOCK_DGRAM else {"routeros_port": port}
        with (
            pytest.raises(errors.PortInUse, match=str(port)) as refused,
            simulated(DEVICES, **ports),
        ):
            pass
        assert refused.value.hint
        assert ("UDP" if kind == socket.SOCK_DGRAM else "TCP") in refused.value.message


def test_the_child_ends_with_its_parent() -> None:
    """A simulator whose parent is killed stops by itself."""
    code = (
        "from poller.sim import fleet, sim_process\n"
        "import time\n"
        "with sim_process.simulated(fleet.devices(3)) as ports:\n"
        "    print(ports.pid, flush=True)\n"
        "    time.sleep(60)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True
    ) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert alive(child)
        parent.kill()
    deadline = time.monotonic() + 10
    while alive(child) and not _is_zombie(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_zombie(pid: int) -> bool:
    """A container without an init leaves an orphan's entry behind."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except FileNotFoundError:
        return True


class Command:
    """`poller sim` as its own process, through the same function the command line mounts."""

    def __init__(self, *arguments: str) -> None:
        code = "import typer; from poller.cli.commands.sim import command; typer.run(command)"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code, *arguments],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def until(self, start: str) -> list[str]:
        """Return the output lines up to the first with this start."""
        assert self.process.stdout is not None
        lines: list[str] = []
        for line in self.process.stdout:
            lines.append(line.rstrip("\n"))
            if line.startswith(start):
                return lines
        raise AssertionError((lines, self.process.communicate()[1]))


@pytest.fixture
def inventory(tmp_path: Path) -> Path:
    return tmp_path / "devices.json"


@pytest.fixture
def command(inventory: Path) -> Iterator[Command]:
    started = Command(
        "-n", "20", "--snmp-port", "0", "--routeros-port", "0", "--write", str(inventory)
    )
    yield started
    started.process.kill()
    started.process.communicate()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_command_serves_what_it_prints_and_stops_at_once(
    command: Command, inventory: Path, number: signal.Signals
) -> None:
    """The command prints the addresses, writes a true inventory, and stops within a second."""
    lines = command.until("  poller device import")
    rows = json.loads(inventory.read_text())
    assert len(rows) == 20
    port = rows[0]["targets"][0]["options"]["port"]
    assert f"try: snmpbulkwalk -v2c -c public 127.20.0.1:{port} 1.3.6.1.2.1.2" in lines
    assert name_of(SNMP, port) == rows[0]["name"].encode()
    before = time.monotonic()
    command.process.send_signal(number)
    assert command.process.wait(10) == 0
    assert time.monotonic() - before < 1
    assert command.process.stderr is not None
    assert command.process.stderr.read() == ""


def test_command_refuses_wrong_arguments(tmp_path: Path) -> None:
    """The error names a bad interval, share or file, and nothing is served."""
    with pytest.raises(errors.InvalidInput, match="5 min"):
        cli.command(interval="5 min")
    with pytest.raises(errors.InvalidInput, match="faulty share"):
        cli.command(faulty=2)
    with pytest.raises(errors.InvalidInput, match="--write"):
        cli.command(devices=1, snmp_port=0, routeros_port=0, write=tmp_path / "missing" / "file")


def test_status_line_has_rates(capsys: pytest.CaptureFixture[str]) -> None:
    """The status line on standard error has requests per second, and is rewritten only on a
    terminal.
    """
    assert cli.rates(Activity(100, 50, 10, 3), Activity(1100, 950, 30, 7), 10) == (
        "SNMP 100/s asked, 90/s answered; RouterOS 2/s, 7 connections"
    )
    cli.reporter(terminal=False)(Activity(0, 0, 0, 0))
    plain = capsys.readouterr()
    assert plain.out == ""
    assert plain.err.startswith("SNMP 0/s")
    assert plain.err.endswith("\n")
    cli.reporter(terminal=True)(Activity(0, 0, 0, 0))
    assert capsys.readouterr().err.startswith("\r")


def test_command_is_a_typer_command() -> None:
    """Every option of the command is described."""
    app = typer.Typer()
    app.command("sim")(cli.command)
    click = typer.main.get_command(app)
    assert all(getattr(option, "help", None) for option in click.params)


def test_without_binding_to_the_device_there_is_a_socket_per_address(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Where the system refuses to bind to lo, every address gets its own socket and works."""
    monkeypatch.setattr(sockets, "_LO", b"no-such-dev\0")

    async def talk() -> tuple[Ports, list[bytes], bytes]:
        simulator = fleet_server.Simulator(DEVICES)
        ports = await simulator.open()
        try:
            snmp = [d for d in DEVICES if d.protocol is fleet.Protocol.SNMP]
            names = [await asyncio.to_thread(name_of, device, ports.snmp) for device in snmp]
            reader, writer = await asyncio.open_connection(ROUTER.address, ports.routeros)
            writer.write(b"\x06/login\x00")
            reply = await reader.readexactly(6)
            writer.close()
            return ports, names, reply
        finally:
            simulator.close()

    ports, names, reply = asyncio.run(talk())
    assert names == [d.name.encode() for d in DEVICES if d.protocol is fleet.Protocol.SNMP]
    assert reply == b"\x05!done"
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as free:
        free.bind((SNMP.address, ports.snmp))


def test_one_socket_serves_all_addresses() -> None:
    """By default one UDP and one TCP socket, bound to the loopback device, serve the fleet."""
    udp, tcp = sockets.open_udp(0, []), sockets.open_tcp(0, [])
    for (sock,) in (udp, tcp):
        with sock:
            assert sock.getsockopt(socket.SOL_SOCKET, 25, 16).rstrip(b"\0") == b"lo"


def test_child_that_dies_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    """A simulator that cannot start is an error, not a hang."""
    monkeypatch.setattr(sim_process.sys, "executable", "/bin/false")
    with pytest.raises(RuntimeError, match="before it was ready"), simulated(DEVICES):
        pass
