"""A TCP proxy that breaks the way networks break: refused, reset, silent, or late."""

from __future__ import annotations

import asyncio
import enum
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class Way(enum.Enum):
    OPEN = "open"
    REFUSED = "refused"  # nobody listens, and what was open has been reset
    SILENT = "silent"  # a black hole: bytes vanish both ways, sockets stay open, new ones open but get no answer


class Proxy:
    """Forwards 127.0.0.1:`port` to another port of 127.0.0.1, from a thread of its own."""

    def __init__(self, upstream: int) -> None:
        self.port = 0
        self._upstream = upstream
        self._way = Way.OPEN
        self._links: set[_Link] = set()
        self._hold_at: bytes | None = None
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True).start()
        self._do(self._listen())

    def refuse(self) -> None:
        """Reset what is open and refuse what comes."""
        self._do(self._cut(Way.REFUSED))

    def reset(self) -> None:
        """Reset what is open; new connections work."""
        self._do(self._cut(Way.OPEN))

    def silence(self) -> None:
        """Packets vanish, and nobody is told."""
        self._do(self._fall_silent())

    def hold(self, word: bytes) -> None:
        """The next request that contains `word`, and what follows it on that connection, is delayed until `release`."""
        self._do(self._set_hold(word))

    @property
    def holding(self) -> bool:
        return any(link.holds for link in list(self._links))

    def release(self) -> None:
        """Deliver what was held, as a network does that comes back: also for clients that gave up waiting."""
        self._do(self._set_hold(None))

    def heal(self) -> None:
        """All is well again. Connections that lost bytes are reset: nobody will send these again."""
        self._do(self._cut(Way.OPEN))

    def close(self) -> None:
        self._do(self._cut(Way.REFUSED))
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _set_hold(self, word: bytes | None) -> None:
        self._hold_at = word
        self._released.clear() if word else self._released.set()

    async def _fall_silent(self) -> None:
        self._way = Way.SILENT
        if self._server is None:
            await self._listen()

    async def _cut(self, way: Way) -> None:
        self._way = way
        self._released.set()
        if self._server is not None and way is Way.REFUSED:
            self._server.close()
            self._server = None
        for link in list(self._links):
            link.reset()
        if self._server is None and way is Way.OPEN:
            await self._listen()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        link = _Link(writer)
        self._links.add(link)
        try:
            await self._serve(link, reader, writer)
        finally:
            self._links.discard(link)
            link.reset()

    async def _serve(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._way is Way.SILENT:
            await self._pass_on(link, reader, writer, watched=False)
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            return
        link.add(back)
        ways = [
            self._pass_on(link, reader, back, watched=True),
            self._pass_on(link, there, writer, watched=False),
        ]
        await asyncio.gather(*ways)

    async def _pass_on(
        self, link: _Link, source: asyncio.StreamReader, sink: asyncio.StreamWriter, watched: bool
    ) -> None:
        with suppress(OSError):
            while data := await source.read(65536):
                if watched and self._hold_at and (link.holds or self._hold_at in data):
                    link.holds = True
                    await self._released.wait()
                if self._way is not Way.SILENT:
                    sink.write(data)
                    await sink.drain()
        link.holds = False
        if self._way is not Way.SILENT:
            sink.close()  # the other side said good-bye


class _Link:
    """One client's connection and the one made for it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writers = [writer]
        self.holds = False

    def add(self, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)

    def reset(self) -> None:
        """End both at once: with a linger time of 0 the kernel sends a reset instead of a good-bye."""
        for writer in self._writers:
            with suppress(OSError, AttributeError):
                sock: socket.socket = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
