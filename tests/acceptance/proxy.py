"""A TCP proxy that fails as networks fail: refused, reset, silent, or late."""

from __future__ import annotations

import asyncio
import enum
import socket
import struct
import threading
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any


class Mode(enum.Enum):
    OPEN = "open"
    REFUSED = "refused"  # no listener; open connections were reset
    # A black hole: bytes vanish both ways. Sockets stay open; new ones open but get no response.
    SILENT = "silent"


class Proxy:
    """Forwards 127.0.0.1:`port` to another port of 127.0.0.1, from its own thread."""

    def __init__(self, upstream: int) -> None:
        self.port = 0
        self.accepted = 0  # connections so far
        self._upstream = upstream
        self._mode = Mode.OPEN
        self._links: set[_Link] = set()
        self._one_way_s = 0.0
        self._round_trips = 0
        self._hold_at: bytes | None = None
        self._released = asyncio.Event()
        self._server: asyncio.Server | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="proxy", daemon=True).start()
        self._do(self._listen())

    def refuse(self) -> None:
        """Reset open connections and refuse new ones."""
        self._do(self._cut(Mode.REFUSED))

    def reset(self) -> None:
        """Reset open connections; new connections work."""
        self._do(self._cut(Mode.OPEN))

    def silence(self) -> None:
        """Drop all packets without closing a connection."""
        self._do(self._fall_silent())

    def slow_down(self, round_trip_s: float) -> None:
        """Delay all data as a long line does; a request and its reply take `round_trip_s`."""
        self._one_way_s = round_trip_s / 2

    @property
    def round_trips(self) -> int:
        """How often a client sent a request after the reply to its last one."""
        return self._round_trips

    def hold(self, word: bytes) -> None:
        """Delay the next request that contains `word`, and the rest of that connection, until
        `release`.
        """
        self._do(self._set_hold(word))

    @property
    def holding(self) -> bool:
        return any(link.holds for link in list(self._links))

    def release(self) -> None:
        """Deliver held data as a recovered network does, also for clients that gave up waiting."""
        self._do(self._set_hold(None))

    def heal(self) -> None:
        """Forward data again.

        Connections that lost bytes are reset, since the bytes are not sent again.
        """
        self._do(self._cut(Mode.OPEN))

    def close(self) -> None:
        self._do(self._cut(Mode.REFUSED))
        self._do(self._end_tasks())
        self._loop.call_soon_threadsafe(self._loop.stop)

    def _do(self, work: Coroutine[Any, Any, None]) -> None:
        asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout=10)

    async def _end_tasks(self) -> None:
        tasks = asyncio.all_tasks() - {asyncio.current_task()}
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _set_hold(self, word: bytes | None) -> None:
        self._hold_at = word
        self._released.clear() if word else self._released.set()

    async def _fall_silent(self) -> None:
        self._mode = Mode.SILENT
        if self._server is None:
            await self._listen()

    async def _cut(self, mode: Mode) -> None:
        self._mode = mode
        self._released.set()
        if self._server is not None and mode is Mode.REFUSED:
            self._server.close()
            self._server = None
        for link in list(self._links):
            link.reset()
        if self._server is None and mode is Mode.OPEN:
            await self._listen()

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.accepted += 1
        link = _Link(writer)
        self._links.add(link)
        try:
            with suppress(asyncio.CancelledError):  # the proxy closes
                await self._serve(link, reader, writer)
        finally:
            self._links.discard(link)
            link.reset()

    async def _serve(
        self, link: _Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if self._mode is Mode.SILENT:
            await self._pass_on(link, reader, writer, watched=False)
            return
        try:
            there, back = await asyncio.open_connection("127.0.0.1", self._upstream)
        except OSError:
            return
        link.add(back)
        directions = [
            self._pass_on(link, reader, back, watched=True),
            self._pass_on(link, there, writer, watched=False),
        ]
        await asyncio.gather(*directions)

    async def _pass_on(
        self, link: _Link, source: asyncio.StreamReader, sink: asyncio.StreamWriter, watched: bool
    ) -> None:
        line = asyncio.Queue[tuple[float, bytes]]()
        arrivals = asyncio.ensure_future(self._deliver(line, sink))
        with suppress(OSError):
            while data := await source.read(65536):
                self._count(link, watched)
                if watched and self._hold_at and (link.holds or self._hold_at in data):
                    link.holds = True
                    await self._released.wait()
                line.put_nowait((self._loop.time() + self._one_way_s, data))
        line.put_nowait((self._loop.time() + self._one_way_s, b""))
        await arrivals
        link.holds = False

    async def _deliver(
        self, line: asyncio.Queue[tuple[float, bytes]], sink: asyncio.StreamWriter
    ) -> None:
        """Pass on data when it has travelled long enough; no data stands for a closed side."""
        with suppress(OSError):
            while True:
                arrival, data = await line.get()
                if arrival > self._loop.time():
                    await asyncio.sleep(arrival - self._loop.time())
                if not data:
                    break
                if self._mode is not Mode.SILENT:
                    sink.write(data)
                    await sink.drain()
        if self._mode is not Mode.SILENT:
            sink.close()  # the other side closed

    def _count(self, link: _Link, is_request: bool) -> None:
        if is_request and not link.asks:
            self._round_trips += 1
        link.asks = is_request


class _Link:
    """One client's connection and the upstream connection made for it."""

    def __init__(self, writer: asyncio.StreamWriter) -> None:
        self._writers = [writer]
        self.holds = False
        self.asks = False  # the last data were the client's

    def add(self, writer: asyncio.StreamWriter) -> None:
        self._writers.append(writer)

    def reset(self) -> None:
        """End both connections at once: with a linger time of 0 the kernel sends a reset."""
        for writer in self._writers:
            with suppress(OSError, AttributeError):
                sock: socket.socket = writer.get_extra_info("socket")
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()
