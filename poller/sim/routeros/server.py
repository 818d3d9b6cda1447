"""All RouterOS API servers of the fleet behind one TCP port, and how their connections misbehave.

A listener shared by all devices cannot leave a connection attempt unanswered, so a router that is down
accepts and then says nothing: the client sees a time-out either way.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import random
import socket
import struct
import time
from collections.abc import Collection, Sequence
from typing import cast

from poller.sim import garbage, sockets
from poller.sim.fleet import Fault, Protocol, SimDevice
from poller.sim.routeros import sentences
from poller.sim.routeros.session import Router, Session

STALL = 0.1  # share of the commands to a lossy router that are never answered
RESET = 0.1  # and that end the connection
PER_TURN = 16  # commands of one client before another has its turn
MAX_UNREAD = 1 << 20  # octets a client may leave unread before we hang up
_NO_LINGER = struct.pack("ii", 1, 0)


class RouterOsServer:
    """Counts what it sees in `commands`, `logins` (good ones, by address) and `connections` (open now)."""

    def __init__(self, devices: Sequence[SimDevice], seed: int = 0) -> None:
        self.routers = {d.address: Router(d) for d in devices if d.protocol is Protocol.ROUTEROS}
        self.dice = random.Random(seed)  # noqa: S311  loss and garbage, not secrets
        self.open_connections: set[Connection] = set()
        self.commands = 0
        self.logins: collections.Counter[str] = collections.Counter()
        self.dark: Collection[str] = ()  # sites
        self._servers: list[asyncio.Server] = []

    @property
    def connections(self) -> int:
        return len(self.open_connections)

    async def open(self, port: int) -> int:
        """Listen on the running loop; returns the port. Raises PortInUse."""
        loop = asyncio.get_running_loop()
        listeners = sockets.open_tcp(port, list(self.routers))
        for listener in listeners:
            server = await loop.create_server(lambda: Connection(self), sock=listener, backlog=sockets.BACKLOG)
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


class Connection(asyncio.Protocol):
    def __init__(self, server: RouterOsServer) -> None:
        self._server = server
        self._decoder = sentences.Decoder()
        self._loop = asyncio.get_running_loop()
        self._waiting: collections.deque[sentences.Sentence] = collections.deque()
        self._stalled = False
        self._free_at = 0.0  # when a slow router has sent its last reply
        self._reboot: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        peer, local = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        router = self._server.routers.get(local[0]) if local else None
        if router is None or not peer or not peer[0].startswith(sockets.LOOPBACK):
            self.abort()
            return
        self._server.open_connections.add(self)
        self._router = router
        self._session = Session(router, self._server.dice.randbytes(16))
        self._stalled = router.device.fault is Fault.DOWN
        self.stall_in(self._server.dark)
        left = router.life.until_reboot(time.time())
        self._reboot = self._loop.call_later(left, self.abort) if left is not None else None

    def connection_lost(self, exc: Exception | None) -> None:
        self._server.open_connections.discard(self)
        if self._reboot:
            self._reboot.cancel()

    def abort(self) -> None:
        """Reset, as a crashed or refusing box does: without the linger option the peer sees a polite end."""
        sock = self._transport.get_extra_info("socket")
        if sock is not None:
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
        self._transport.abort()

    def stall_in(self, sites: Collection[str]) -> None:
        self._stalled = self._stalled or self._router.device.site in sites

    def data_received(self, data: bytes) -> None:
        if self._stalled or self._transport.is_closing():
            return
        if self._router.device.fault is Fault.GARBAGE:
            self._transport.write(garbage.garble(b"\x05!done\0", self._server.dice))
            return
        try:
            commands = self._decoder.feed(data)
        except sentences.Malformed:
            self.abort()
            return
        self._waiting.extend(commands)
        self._work()

    def _work(self) -> None:
        """A few commands at a time: a client that sends thousands waits for its turn like the others."""
        for _ in range(min(PER_TURN, len(self._waiting))):
            if self._stalled or self._session.closed or self._transport.is_closing():
                self._waiting.clear()
                return
            self._command(self._waiting.popleft())
        if self._waiting:
            self._transport.pause_reading()
            self._loop.call_soon(self._work)
        elif not self._transport.is_closing():
            self._transport.resume_reading()

    def _command(self, sentence: sentences.Sentence) -> None:
        self._server.commands += 1
        was_in = self._session.logged_in
        reply = self._session.answer(sentence, time.time())
        self._server.logins[self._router.device.address] += self._session.logged_in and not was_in
        fault = self._router.device.fault
        if fault is Fault.LOSSY and self._lose():
            return
        if fault is Fault.SLOW:
            self._later(reply)
        else:
            self._write(reply, self._session.closed)

    def _lose(self) -> bool:
        luck = self._server.dice.random()
        self._stalled = luck < STALL + RESET
        if STALL <= luck < STALL + RESET:
            self.abort()
        return self._stalled

    def _later(self, reply: bytes) -> None:
        """After the delay, and never before the reply to an earlier command."""
        delay = self._router.device.slow_seconds * self._server.dice.uniform(0.5, 1.5)
        self._free_at = max(self._free_at, self._loop.time()) + delay
        self._loop.call_at(self._free_at, self._write, reply, self._session.closed)

    def _write(self, reply: bytes, last: bool) -> None:
        if self._stalled or self._transport.is_closing():
            return
        self._transport.write(reply)
        if last:
            self._transport.close()
        elif self._transport.get_write_buffer_size() > MAX_UNREAD:
            self.abort()
