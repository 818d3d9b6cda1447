"""All RouterOS API servers of the fleet behind one TCP port (and one for TLS, if asked for).

A listener shared by all devices cannot leave a connection attempt unanswered, so a router that is down accepts and
then says nothing: the client sees a time-out either way.
"""

from __future__ import annotations

import asyncio
import collections
import random
import ssl
from collections.abc import Collection, Sequence
from typing import NamedTuple

from poller import errors
from poller.sim import sockets
from poller.sim.clock import Clock
from poller.sim.fleet import Protocol, SimDevice
from poller.sim.routeros.client_connection import Connection
from poller.sim.routeros.injected_faults import Accidents
from poller.sim.routeros.router import Router


class Visits(NamedTuple):
    """What a router saw since the start: good logins, commands by name, sentences it said; connections open now."""

    logins: int
    commands: dict[str, int]
    said: int
    connections: int


class RouterOsServer:
    """Counts what it sees in `commands`, `logins` (good ones, by address) and `connections` (open now)."""

    def __init__(
        self, devices: Sequence[SimDevice], seed: int = 0, clock: Clock | None = None
    ) -> None:
        self.routers = {d.address: Router(d) for d in devices if d.protocol is Protocol.ROUTEROS}
        self.clock = clock or Clock()
        self.dice = random.Random(seed)  # noqa: S311  loss and garbage, not secrets
        self.open_connections: set[Connection] = set()
        self.accidents = Accidents()
        self.commands = 0
        self.dark: Collection[str] = ()  # sites
        self._servers: list[asyncio.Server] = []

    @property
    def connections(self) -> int:
        return len(self.open_connections)

    @property
    def logins(self) -> collections.Counter[str]:
        return collections.Counter(
            {a: router.logins for a, router in self.routers.items() if router.logins}
        )

    async def open(self, port: int, tls: ssl.SSLContext | None = None) -> int:
        """Listen on the running loop, for plain or for TLS connections; returns the port. Raises PortInUse."""
        loop = asyncio.get_running_loop()
        listeners = sockets.open_tcp(port, list(self.routers))
        for listener in listeners:
            server = await loop.create_server(
                lambda: Connection(self), sock=listener, backlog=sockets.BACKLOG, ssl=tls
            )
            self._servers.append(server)
        return int(listeners[0].getsockname()[1]) if listeners else 0

    def close(self) -> None:
        for server in self._servers:
            server.close()
        for connection in list(self.open_connections):
            connection.abort()

    def darken(self, sites: Collection[str]) -> None:
        """The routers of these sites are silent from now on, and no others; what was open there stays silent."""
        self.dark = sites
        for connection in self.open_connections:
            connection.stall_in(sites)

    def router(self, address: str) -> Router:
        """Raises InvalidInput when no router has this address."""
        if address not in self.routers:
            raise errors.InvalidInput(
                f"no simulated router has the address {address}", hint="give one of the fleet's"
            )
        return self.routers[address]

    def visits(self, address: str) -> Visits:
        router = self.router(address)
        return Visits(router.logins, dict(router.commands), router.said, len(self._of(address)))

    def kick(self, address: str) -> None:
        """Its sessions end politely, as those of a user who was removed."""
        for connection in self._of(address):
            connection.hang_up()

    def reboot(self, address: str) -> None:
        """Its sessions are reset, its uptime and counters start over."""
        self.router(address).reboot(self.clock.now())
        for connection in self._of(address):
            connection.abort()

    def _of(self, address: str) -> list[Connection]:
        router = self.router(address)
        return [connection for connection in self.open_connections if connection.router is router]
