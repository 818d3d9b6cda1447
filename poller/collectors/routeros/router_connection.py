"""One TCP or TLS connection to a router: bytes out, sentences in, and whose turn it is. Knows no commands.

What comes when nothing was asked would be taken for the next answer, so that it ends the connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from typing import cast

from librouteros import exceptions

from poller.collectors.routeros.sentence_parser import Decoder, Malformed, Sentence

_CLOSE_S = 0.2
#: An idle connection whose other end is gone is noticed before the next poll; and firewalls on the way remember it.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


class OutOfTurn(exceptions.ProtocolError):  # type: ignore[misc]
    """The router spoke when it was not asked."""


class Link(asyncio.Protocol):
    """What librouteros calls a transport. Once something is wrong, nothing more is read of it."""

    def __init__(self) -> None:
        self.received = 0  # bytes
        self.sent = 0  # sentences
        self._decoder = Decoder()
        self._sentences: deque[Sentence] = deque()
        self._asked = False
        self._over: Exception | None = None  # why nothing more will come
        self._waiting: asyncio.Future[None] | None = None
        self._lost = asyncio.Event()

    def begin_poll(self) -> None:
        """What it may say is counted from here."""
        self._decoder.begin()

    # A command: begin, write, sentence until it is answered, end.

    def begin(self) -> None:
        """Raises when there is nobody to answer, or something left of what was said before."""
        if self._asked:
            raise RuntimeError("one command at a time")
        if isinstance(self._over, OutOfTurn):
            raise self._over
        if self._over is not None or self._transport.is_closing():
            raise exceptions.ConnectionClosed("it hung up")
        self._asked = True

    async def write(self, data: bytes) -> None:
        """A sentence. Commands are short: the system's buffer takes them."""
        self.sent += 1
        self._transport.write(data)

    async def sentence(self) -> Sentence:
        """The next one. Raises what ended the connection."""
        while not self._sentences:
            if self._over is not None:
                raise self._over
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        return self._sentences.popleft()

    def end(self) -> None:
        """The command is answered."""
        self._asked = False
        if self._sentences or not self._decoder.between:
            self._fail(_out_of_turn())

    # The other end.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's is one without saying so
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE.items():
                if hasattr(socket, name):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self._over is not None:
            return
        if not self._asked:
            self._fail(_out_of_turn())
            return
        try:
            self._sentences += self._decoder.feed(data)
        except Malformed as error:
            self._fail(error)
            return
        if self._sentences:
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        if self._over is None:
            self._over = exc or exceptions.ConnectionClosed("it hung up")
        self._wake()

    def _fail(self, error: Exception) -> None:
        self._over = error
        self.abort()
        self._wake()

    def _wake(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    # The end.

    def abort(self) -> None:
        """Cut it: what was not read is lost."""
        self._asked = False
        if self._over is None:
            self._over = exceptions.ConnectionClosed("the connection was cut")
        self._transport.abort()

    async def close(self) -> None:
        """End it in order, but do not wait long for the other end to agree."""
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._lost.wait()
        self._transport.abort()

    def certificate(self) -> bytes | None:
        """What the other end showed, as DER; None for nothing."""
        spoken = self._transport.get_extra_info("ssl_object")
        return spoken.getpeercert(binary_form=True) if spoken else None


async def open_link(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str = ""
) -> Link:
    loop = asyncio.get_running_loop()
    _, link = await loop.create_connection(
        Link, address, port, ssl=tls, server_hostname=server_name or None
    )
    return link


def _out_of_turn() -> OutOfTurn:
    return OutOfTurn("it said something that nobody asked for")
