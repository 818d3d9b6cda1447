"""A relay between a collector and a device: it records TCP and UDP, and can cut connections."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from poller.testing.background import Pair, background, pair

#: Called for all data with the protocol, the number of the connection, whether the device sent it,
#: and the data.
Hear = Callable[[str, int, bool, bytes], None]


class Relay:
    """Listens on the loopback port `port` and forwards to one device. Made by `relayed`."""

    def __init__(self, address: str, port: int, hear: Hear) -> None:
        self.port = 0
        self._to = (address, port)
        self._hear = hear
        self._numbers = count(1)
        self._open: set[asyncio.StreamWriter] = set()
        self._upstreams: dict[Any, _Upstream] = {}
        self._run: Callable[[Any], Any]

    def cut(self) -> None:
        """Close every TCP connection in both directions, as a device closes an idle session."""
        self._run(self._cut())

    async def _cut(self) -> None:
        for writer in list(self._open):
            writer.close()

    async def _serve(self, both: Pair) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        await loop.create_datagram_endpoint(lambda: _Downstream(self), sock=both.datagrams)
        return await asyncio.start_server(self._connected, sock=both.listener)

    async def _connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        number = next(self._numbers)
        try:
            from_device, to_device = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        writers = {writer, to_device}
        self._open |= writers
        await asyncio.gather(
            self._pump(reader, to_device, number, False),
            self._pump(from_device, writer, number, True),
        )
        self._open -= writers

    async def _pump(
        self, source: asyncio.StreamReader, to: asyncio.StreamWriter, number: int, answer: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                self._hear("tcp", number, answer, data)
                to.write(data)
                await to.drain()
        to.close()

    async def pass_on(self, data: bytes, client: Any, back: asyncio.DatagramTransport) -> None:
        """Send a client's datagram to the device. Each client has a socket for its replies."""
        upstream = self._upstreams.get(client)
        if upstream is None:
            upstream = _Upstream(self._hear, next(self._numbers), client, back)
            self._upstreams[client] = upstream
            await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: upstream, remote_addr=self._to
            )
        self._hear("udp", upstream.number, False, data)
        upstream.transport.sendto(data)

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        await self._cut()
        for upstream in self._upstreams.values():
            upstream.transport.close()


class _Downstream(asyncio.DatagramProtocol):
    """The UDP socket of the clients."""

    def __init__(self, relay: Relay) -> None:
        self._relay = relay
        self._tasks: set[asyncio.Task[None]] = set()

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        task = asyncio.get_running_loop().create_task(
            self._relay.pass_on(data, addr, self._transport)
        )
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


class _Upstream(asyncio.DatagramProtocol):
    """The UDP socket to the device for one client."""

    def __init__(
        self, hear: Hear, number: int, client: Any, back: asyncio.DatagramTransport
    ) -> None:
        self.number = number
        self._hear = hear
        self._client = client
        self._back = back

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._hear("udp", self.number, True, data)
        self._back.sendto(data, self._client)


def _hear_nothing(protocol: str, number: int, answer: bool, data: bytes) -> None:
    """Record nothing: for tests that only cut connections."""


@contextmanager
def relayed(address: str, port: int, hear: Hear = _hear_nothing) -> Iterator[Relay]:
    """Relay to the device at this address while the context lasts."""
    both = pair()
    with background() as run:
        relay = Relay(address, port, hear)
        relay.port = both.port
        relay._run = run
        server = run(relay._serve(both))
        try:
            yield relay
        finally:
            run(relay._close(server))
            both.datagrams.close()
