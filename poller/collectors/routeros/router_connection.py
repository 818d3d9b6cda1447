"""One TCP or TLS connection to a router: writes bytes, reads sentences. Knows no commands.

Data that arrives while no command is open ends the connection: it would be taken for the reply to
the next command.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import cast

from librouteros import exceptions

from poller.collectors.memory.answer_budget import STEP_BYTES, AnswerTooLarge, Hold
from poller.collectors.routeros.sentence_parser import MalformedSentence, Sentence, SentenceParser

_CLOSE_S = 0.2
#: Detects a dead peer of an idle connection before the next poll, and keeps firewalls on the path
#: from dropping the connection.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}


#: Sentences that are parsed before the reader has taken them. A flood then waits in the router's
#: own socket.
_READ_AHEAD = 2_000


class UnsolicitedData(exceptions.ProtocolError):  # type: ignore[misc]
    """The router sent data while no command was open."""

    def __init__(self) -> None:
        super().__init__("it sent data without a command")


class RouterConnection(asyncio.Protocol):
    """The transport of librouteros. After a failure nothing more is read.

    A failure is kept as a function that makes its exception: one exception that is raised again
    would keep the frames of every command, and with them all rows.

    The order of calls for a command: `begin_command`, `write`, `sentence` until the reply is
    complete, `end_command`.
    """

    def __init__(self) -> None:
        self.received = 0  # bytes
        self.sent = 0  # sentences
        self._parser = SentenceParser()
        self._sentences: deque[Sentence] = deque()
        self._paused = False  # nothing is read from the socket until all sentences are taken
        self._in_command = False
        self._failure: Callable[[], Exception] | None = None  # why nothing more will arrive
        self._hold: Hold | None = None
        self._reported = 0  # bytes of memory that the budget knows of
        self._waiting: asyncio.Future[None] | None = None
        self._lost = asyncio.Event()

    def begin_poll(self, hold: Hold | None = None) -> None:
        """Restart the limits of the replies of one poll. `hold` takes the size of large ones."""
        self._parser.begin_poll()
        self._hold = hold
        self._reported = 0

    def begin_command(self) -> None:
        """Open a command. Raises if the connection is over, or has unread data."""
        if self._in_command:
            raise RuntimeError("one command at a time")
        if self._failure is UnsolicitedData:
            raise UnsolicitedData
        if self._failure is not None or self._transport.is_closing():
            raise exceptions.ConnectionClosed("it hung up")
        self._in_command = True

    async def write(self, data: bytes) -> None:
        """Write a sentence. Commands are short: the system's buffer takes them."""
        self.sent += 1
        self._transport.write(data)

    async def sentence(self) -> Sentence:
        """Wait for the next sentence. Raises the failure that ended the connection."""
        while not self._sentences:
            if self._failure is not None:
                raise self._failure()
            self._waiting = asyncio.get_running_loop().create_future()
            await self._waiting
        sentence = self._sentences.popleft()
        if self._paused and not self._sentences:
            self._paused = False
            self._transport.resume_reading()
        return sentence

    def end_command(self) -> None:
        """Close a command whose reply is complete."""
        self._in_command = False
        if self._sentences or not self._parser.at_boundary:
            self._fail(UnsolicitedData)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        # The transport of uvloop does not inherit from asyncio.Transport.
        self._transport = cast(asyncio.Transport, transport)
        sock = transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for name, value in _KEEPALIVE.items():
                if hasattr(socket, name):
                    sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)

    def data_received(self, data: bytes) -> None:
        self.received += len(data)
        if self._failure is not None:
            return
        if not self._in_command:
            self._fail(UnsolicitedData)
            return
        try:
            self._sentences += self._parser.feed(data)
            self._report_memory()
        except (MalformedSentence, AnswerTooLarge) as error:
            self._fail(partial(type(error), *error.args))
            return
        if self._sentences:
            self._wake_reader()
        if len(self._sentences) > _READ_AHEAD:
            self._paused = True
            self._transport.pause_reading()

    def _report_memory(self) -> None:
        """Tell the budget of the worker about a large reply. Raises AnswerTooLarge."""
        more = self._parser.memory_bytes - self._reported
        if more > STEP_BYTES and self._hold is not None:
            self._reported += more
            self._hold(more)

    def connection_lost(self, exc: Exception | None) -> None:
        self._lost.set()
        if self._failure is None:
            self._failure = partial(exceptions.ConnectionClosed, "it hung up")
            if exc is not None:
                self._failure = partial(type(exc), *exc.args)
        self._wake_reader()

    def _fail(self, failure: Callable[[], Exception]) -> None:
        self._failure = failure
        self.abort()
        self._wake_reader()

    def _wake_reader(self) -> None:
        if self._waiting is not None and not self._waiting.done():
            self._waiting.set_result(None)

    def abort(self) -> None:
        """Cut the connection; unread data is lost."""
        self._in_command = False
        self._sentences.clear()
        self._parser = SentenceParser()
        self._hold = None
        if self._failure is None:
            self._failure = partial(exceptions.ConnectionClosed, "the connection was cut")
        self._transport.abort()

    async def close(self) -> None:
        """Close the connection in order, with a short wait for the router."""
        self._transport.close()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._lost.wait()
        self._transport.abort()

    def certificate(self) -> bytes | None:
        """Return the router's certificate in DER; None without one."""
        session = self._transport.get_extra_info("ssl_object")
        return session.getpeercert(binary_form=True) if session else None


async def open_connection(
    address: str, port: int, tls: ssl.SSLContext | None, server_name: str = ""
) -> RouterConnection:
    loop = asyncio.get_running_loop()
    _, connection = await loop.create_connection(
        RouterConnection, address, port, ssl=tls, server_hostname=server_name or None
    )
    return connection
