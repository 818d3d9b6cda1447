"""Serve the whole fleet in this process until a signal stops it."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import signal
import tempfile
from collections.abc import Awaitable, Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import uvloop

from poller import errors
from poller.sim import sockets
from poller.sim.clock import Clock
from poller.sim.fleet import SimDevice
from poller.sim.routeros.injected_faults import Accident
from poller.sim.routeros.routeros_server import RouterOsServer, Visits
from poller.sim.snmp.snmp_server import SnmpServer

STATUS_SECONDS = 10.0


class Ports(NamedTuple):
    """The ports of the fleet, on each device's own address, and the process that serves it."""

    snmp: int
    routeros: int
    pid: int
    routeros_tls: int = 0  # api-ssl with a certificate signed by the CA in `ca_file`
    routeros_anonymous: int = 0  # api-ssl without a certificate
    ca_file: str = ""


class TlsPorts(NamedTuple):
    """The ports for api-ssl with and without a certificate. 0 takes a free port."""

    signed: int = 0
    anonymous: int = 0


class Activity(NamedTuple):
    """Totals since the start, and the connections that are open now."""

    datagrams: int
    replies: int
    commands: int
    connections: int


class Simulator:
    """The servers of a fleet, for both protocols, on the running loop."""

    def __init__(self, devices: Sequence[SimDevice], clock: Clock | None = None) -> None:
        self._snmp = SnmpServer(devices, clock=clock)
        self.routeros = RouterOsServer(devices, clock=clock)
        self._directory: tempfile.TemporaryDirectory[str] | None = None

    async def open(
        self, snmp_port: int = 0, routeros_port: int = 0, tls: TlsPorts | None = None
    ) -> Ports:
        """Listen on the ports; 0 takes a free port. Raises PortInUse and leaves nothing open."""
        try:
            with _naming("--snmp-port"):
                snmp = self._snmp.open(snmp_port)
            with _naming("--routeros-port"):
                ports = Ports(snmp, await self.routeros.open(routeros_port), os.getpid())
            return await self._open_tls(ports, tls) if tls else ports
        except BaseException:
            self.close()
            raise

    async def _open_tls(self, ports: Ports, tls: TlsPorts) -> Ports:
        from poller.sim.routeros import certificates  # slow to import, and rarely needed

        self._directory = tempfile.TemporaryDirectory(prefix="poller-sim-")
        directory = Path(self._directory.name)
        signed = certificates.signed(directory, list(self.routeros.routers))
        with _naming("--tls-port"):
            routeros_tls = await self.routeros.open(tls.signed, signed)
        return ports._replace(
            routeros_tls=routeros_tls,
            routeros_anonymous=await self.routeros.open(
                tls.anonymous, certificates.anonymous(directory)
            ),
            ca_file=str(directory / "ca.pem"),
        )

    def darken(self, sites: Collection[str]) -> None:
        """Cut the uplinks of these sites, and restore those of all other sites."""
        self._snmp.darken(sites)
        self.routeros.darken(sites)

    def set_clock(self, clock: Clock) -> None:
        """Use this clock for all devices."""
        self._snmp.clock = self.routeros.clock = clock

    def expect(self, address: str, accident: Accident) -> None:
        """Schedule an accident for the next answers of a router. Raises InvalidInput."""
        self.routeros.router(address)
        self.routeros.accidents.expect(address, accident)

    def visits(self, address: str) -> Visits:
        """Return the totals of a router. Raises InvalidInput."""
        return self.routeros.visits(address)

    def close(self) -> None:
        self._snmp.close()
        self.routeros.close()
        if self._directory is not None:
            self._directory.cleanup()
            self._directory = None

    @property
    def activity(self) -> Activity:
        return Activity(
            self._snmp.requests,
            self._snmp.replies,
            self.routeros.commands,
            self.routeros.connections,
        )


@contextmanager
def _naming(option: str) -> Iterator[None]:
    """Name the CLI option in the error of a port that cannot be opened."""
    try:
        yield
    except (errors.PortInUse, errors.InvalidInput) as error:
        raise type(error)(f"{option}: {error.message}", error.cause, error.hint) from None


Obey = Callable[[Simulator, bytes], None]


def run(
    devices: Sequence[SimDevice],
    snmp_port: int = 0,
    routeros_port: int = 0,
    ready: Callable[[Ports], None] | None = None,
    status: Callable[[Activity], None] | None = None,
    lifeline: int | None = None,
    obey: Obey | None = None,
    tls: TlsPorts | None = None,
    clock: Clock | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the file descriptor `lifeline` reaches its end.

    `ready` is called once with the ports, `status` every STATUS_SECONDS, and `obey` with each line
    from the lifeline. Raises PortInUse.
    """
    sockets.raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        simulator = Simulator(devices, clock)
        opening = simulator.open(snmp_port, routeros_port, tls)
        runner.run(_serve(simulator, opening, ready, status, lifeline, obey))


async def _serve(
    simulator: Simulator,
    opening: Awaitable[Ports],
    ready: Callable[[Ports], None] | None,
    status: Callable[[Activity], None] | None,
    lifeline: int | None,
    obey: Obey | None,
) -> None:
    stop = _stop_event()
    ports = await opening
    gc.collect()
    gc.freeze()  # the fleet lives until the end: exclude it from garbage collection
    if lifeline is not None:
        _follow(lifeline, stop, functools.partial(obey, simulator) if obey else None)
    try:
        if ready:
            ready(ports)
        while not await _stopped_within(stop, STATUS_SECONDS):
            if status:
                status(simulator.activity)
    finally:
        simulator.close()


def _stop_event() -> asyncio.Event:
    loop = asyncio.get_running_loop()
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _follow(lifeline: int, stop: asyncio.Event, obey: Callable[[bytes], None] | None) -> None:
    """Read lines from the lifeline; stop the server at its end."""
    loop = asyncio.get_running_loop()
    waiting = bytearray()

    def read() -> None:
        data = os.read(lifeline, 4096)
        if not data:
            loop.remove_reader(lifeline)
            stop.set()
            return
        waiting.extend(data)
        *lines, waiting[:] = waiting.split(b"\n")
        for line in lines:
            if obey:
                obey(bytes(line))

    loop.add_reader(lifeline, read)


async def _stopped_within(stop: asyncio.Event, seconds: float) -> bool:
    try:
        async with asyncio.timeout(seconds):
            await stop.wait()
    except TimeoutError:
        return False
    return True
