"""Open the whole fleet in this process and serve it until told to stop."""

from __future__ import annotations

import asyncio
import functools
import gc
import os
import signal
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple

import uvloop

from poller.sim import sockets
from poller.sim.fleet import SimDevice
from poller.sim.routeros.server import RouterOsServer
from poller.sim.snmp.server import SnmpServer

STATUS_SECONDS = 10.0


class Ports(NamedTuple):
    """Where the fleet listens (on every device's own address), and in which process."""

    snmp: int
    routeros: int
    pid: int


class Activity(NamedTuple):
    """What was seen since the start; `connections` are those open now."""

    datagrams: int
    replies: int
    commands: int
    connections: int


class Simulator:
    """Both protocols of a fleet on the running loop."""

    def __init__(self, devices: Sequence[SimDevice]) -> None:
        self._snmp = SnmpServer(devices)
        self._routeros = RouterOsServer(devices)

    async def open(self, snmp_port: int = 0, routeros_port: int = 0) -> Ports:
        """Listen; port 0 takes a free one. Raises PortInUse, and then nothing is left open."""
        try:
            return Ports(self._snmp.open(snmp_port), await self._routeros.open(routeros_port), os.getpid())
        except BaseException:
            self.close()
            raise

    def darken(self, sites: Collection[str]) -> None:
        """The uplinks of these sites are cut from now on; all others answer, also those that were dark before."""
        self._snmp.darken(sites)
        self._routeros.darken(sites)

    def close(self) -> None:
        self._snmp.close()
        self._routeros.close()

    @property
    def activity(self) -> Activity:
        return Activity(self._snmp.requests, self._snmp.replies, self._routeros.commands, self._routeros.connections)


Obey = Callable[[Simulator, bytes], None]


def run(
    devices: Sequence[SimDevice],
    snmp_port: int = 0,
    routeros_port: int = 0,
    ready: Callable[[Ports], None] | None = None,
    status: Callable[[Activity], None] | None = None,
    lifeline: int | None = None,
    obey: Obey | None = None,
) -> None:
    """Serve until SIGTERM or SIGINT, or until the file descriptor `lifeline` reaches its end.

    `ready` is called once with the ports, `status` every STATUS_SECONDS, `obey` with each line that comes on the
    lifeline. Raises PortInUse.
    """
    sockets.raise_file_limit()
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(_serve(Simulator(devices), snmp_port, routeros_port, ready, status, lifeline, obey))


async def _serve(
    simulator: Simulator,
    snmp_port: int,
    routeros_port: int,
    ready: Callable[[Ports], None] | None,
    status: Callable[[Activity], None] | None,
    lifeline: int | None,
    obey: Obey | None,
) -> None:
    stop = _stop_event()
    ports = await simulator.open(snmp_port, routeros_port)
    gc.collect()
    gc.freeze()  # the fleet stays: do not look through it at every collection
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
    loop, stop = asyncio.get_running_loop(), asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stop.set)
    return stop


def _follow(lifeline: int, stop: asyncio.Event, obey: Callable[[bytes], None] | None) -> None:
    loop, waiting = asyncio.get_running_loop(), bytearray()

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
