"""Stands between a collector and a device, TCP and UDP: hears what both say, and can cut the line."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from typing import Any

from poller.testing.background import Pair, background, pair

#: Protocol, number of the conversation, whether the device said it, and what.
Hear = Callable[[str, int, bool, bytes], None]


class Relay:
    """Listens on `port` of loopback."""

    def __init__(self, address: str, port: int, hear: Hear) -> None:
        self.port = 0
        self._to = (address, port)
        self._hear = hear
        self._numbers = count(1)
        self._open: set[asyncio.StreamWriter] = set()
        self._ways: dict[Any, _Upstream] = {}
        self._run: Callable[[Any], Any]

    def cut(self) -> None:
        """End every connection, politely, as a device does that has had enough of an idle one."""
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
            there, back = await asyncio.open_connection(*self._to)
        except OSError:
            writer.transport.abort()
            return
        mine = {writer, back}
        self._open |= mine
        await asyncio.gather(
            self._pump(reader, back, number, False), self._pump(there, writer, number, True)
        )
        self._open -= mine

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
        """A datagram of a client, by a socket of its own: the answers come back to it."""
        way = self._ways.get(client)
        if way is None:
            way = self._ways[client] = _Upstream(self._hear, next(self._numbers), client, back)
            await asyncio.get_running_loop().create_datagram_endpoint(
                lambda: way, remote_addr=self._to
            )
        self._hear("udp", way.number, False, data)
        way.transport.sendto(data)

    async def _close(self, server: asyncio.Server) -> None:
        server.close()
        await self._cut()
        for way in self._ways.values():
            way.transport.close()


class _Downstream(asyncio.DatagramProtocol):
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
    def __init__(
        self, hear: Hear, number: int, client: Any, back: asyncio.DatagramTransport
    ) -> None:
        self.number = number
        self._hear, self._client, self._back = hear, client, back

    def connection_made(self, transport: Any) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self._hear("udp", self.number, True, data)
        self._back.sendto(data, self._client)


def _hear_nothing(protocol: str, number: int, answer: bool, data: bytes) -> None:
    """For those who only want to cut the line."""


@contextmanager
def relayed(address: str, port: int, hear: Hear = _hear_nothing) -> Iterator[Relay]:
    """A relay to that device, until left."""
    both = pair()
    with background() as run:
        relay = Relay(address, port, hear)
        relay.port, relay._run = both.port, run
        server = run(relay._serve(both))
        try:
            yield relay
        finally:
            run(relay._close(server))
            both.datagrams.close()
