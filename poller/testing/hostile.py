"""Devices as one hopes never to meet: silent ones, ones that reset or hang up, and ones that talk nonsense."""

from __future__ import annotations

import asyncio
import enum
import random
import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from poller.sim import garbled_replies
from poller.testing.background import Pair, background, pair

#: Even a silent one hangs up in the end, so that a collector without any time-out does not stop the tests.
PATIENCE_S = 10.0
_LINGER_NOT = struct.pack("ii", 1, 0)
#: To some protocols the device speaks first.
_GREETING_S = 0.05


class Manner(enum.StrEnum):
    SILENT = "silent"  # takes everything, says nothing
    REFUSES = "refuses"  # nobody listens
    RESETS = "resets"  # at once
    HANGS_UP = "hangs up"  # after the first words
    BABBLES = "babbles"  # answers what is not the protocol, and stays
    STOPS = "stops"  # the same, and hangs up in the middle


@contextmanager
def hostile(manner: Manner, seed: int = 0) -> Iterator[int]:
    """Serve in that manner on loopback, TCP and UDP; gives the port."""
    both = pair()
    port = both.port
    if manner is Manner.REFUSES:
        both.close()
        yield port
        return
    with background() as run:
        talk = _Talk(manner, random.Random(seed))  # noqa: S311  nonsense, not secrets
        run(_serve(both, talk))
        try:
            yield port
        finally:
            run(talk.close())


class _Talk:
    """What it says, and whom it talks to."""

    def __init__(self, manner: Manner, dice: random.Random) -> None:
        self.manner = manner
        self._dice = dice
        self.server: asyncio.Server | None = None
        self.transports: set[asyncio.BaseTransport] = set()

    def nonsense(self, heard: bytes) -> bytes:
        return garbled_replies.garble(heard or b"hello", self._dice)

    @property
    def babbles(self) -> bool:
        return self.manner in (Manner.BABBLES, Manner.STOPS)

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        for transport in list(self.transports):
            transport.close() if isinstance(
                transport, asyncio.DatagramTransport
            ) else transport.abort()  # type: ignore[attr-defined]
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, talk: _Talk) -> None:
        self._talk = talk
        self._spoke = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._talk.transports.add(transport)
        if self._talk.manner is Manner.RESETS:
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _LINGER_NOT
            )
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        loop.call_later(PATIENCE_S, transport.abort)
        if self._talk.babbles:
            loop.call_later(_GREETING_S, self._greet)

    def data_received(self, data: bytes) -> None:
        if self._talk.manner is Manner.HANGS_UP:
            self._transport.close()
        elif self._talk.babbles:
            self._say(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._talk.transports.discard(self._transport)

    def _greet(self) -> None:
        if not self._spoke:
            self._say(b"")

    def _say(self, heard: bytes) -> None:
        self._spoke = True
        if not self._transport.is_closing():
            self._transport.write(self._talk.nonsense(heard))
            if self._talk.manner is Manner.STOPS:
                self._transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, talk: _Talk) -> None:
        self._talk = talk

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._talk.transports.add(transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self._talk.babbles:
            self._transport.sendto(self._talk.nonsense(data), addr)


async def _serve(both: Pair, talk: _Talk) -> None:
    loop = asyncio.get_running_loop()
    talk.server = await loop.create_server(lambda: _Connection(talk), sock=both.listener)
    await loop.create_datagram_endpoint(lambda: _Datagrams(talk), sock=both.datagrams)
