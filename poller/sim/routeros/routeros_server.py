"""The RouterOS API servers of the fleet behind one TCP port, and optional TLS ports.

A shared listener cannot ignore a connection attempt. A router that is down accepts the connection
and stays silent, which is a time-out for the client, too.
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
    """Totals of a router since the start, and the connections that are open now.

    `logins` counts successful logins, `said` the sentences that the router sent.
    """

    logins: int
    commands: dict[str, int]
    said: int
    connections: int


class RouterOsServer:
    """The routers of a fleet. Counts commands, successful logins and open connections."""

    def __init__(
        self, devices: Sequence[SimDevice], seed: int = 0, clock: Clock | None = None
    ) -> None:
        self.routers = {d.address: Router(d) for d in devices if d.protocol is Protocol.ROUTEROS}
        self.clock = clock or Clock()
        self.dice = random.Random(seed)  # noqa: S311  loss and garbage, not secrets
        self.open_connections: set[Connection] = set()
        self.accidents = Accidents()
        self.commands = 0
        self.dark: Collection[str] = ()  # silenced sites
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
        """Listen for plain or TLS connections and return the port. Raises PortInUse."""
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
        """Silence the routers of these sites, and restore those of all other sites.

        A connection that was silenced never answers again.
        """
        self.dark = sites
        for connection in self.open_connections:
            connection.stall_in(sites)

    def router(self, address: str) -> Router:
        """Return the router at this address. Raises InvalidInput."""
        if address not in self.routers:
            raise errors.InvalidInput(
                f"no simulated router has the address {address}", hint="give one of the fleet's"
            )
        return self.routers[address]

    def visits(self, address: str) -> Visits:
        router = self.router(address)
        return Visits(
            router.logins, dict(router.commands), router.said, len(self._connections_of(address))
        )

    def kick(self, address: str) -> None:
        """Close the sessions of a router in an orderly way."""
        for connection in self._connections_of(address):
            connection.hang_up()

    def reboot(self, address: str) -> None:
        """Reset the sessions of a router and restart its uptime and counters."""
        self.router(address).reboot(self.clock.now())
        for connection in self._connections_of(address):
            connection.abort()

    def _connections_of(self, address: str) -> list[Connection]:
        router = self.router(address)
        return [connection for connection in self.open_connections if connection.router is router]
