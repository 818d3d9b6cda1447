"""Devices that misbehave, for tests: silent, refusing, resetting, hanging up, sending garbage."""

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

#: A silent device closes the connection after this long, so that a collector without any time-out
#: does not stop the tests.
PATIENCE_S = 10.0
_RESET_ON_CLOSE = struct.pack("ii", 1, 0)
#: In some protocols the device speaks first; it waits this long for a request before it does.
_GREETING_S = 0.05


class Manner(enum.StrEnum):
    """The behaviour of a hostile device."""

    SILENT = "silent"  # accepts connections and requests, sends nothing
    REFUSES = "refuses"  # its port is closed
    RESETS = "resets"  # resets a connection at once
    HANGS_UP = "hangs up"  # closes a connection after the first request
    BABBLES = "babbles"  # replies with garbage and keeps the connection open
    STOPS = "stops"  # replies with garbage and closes the connection


@contextmanager
def hostile(manner: Manner, seed: int = 0) -> Iterator[int]:
    """Serve a hostile device on loopback, TCP and UDP. Yields its port.

    `seed` decides which garbage a device sends in the manners BABBLES and STOPS.
    """
    both = pair()
    port = both.port
    if manner is Manner.REFUSES:
        both.close()
        yield port
        return
    with background() as run:
        device = _HostileDevice(manner, random.Random(seed))  # noqa: S311  garbage, not secrets
        run(_serve(both, device))
        try:
            yield port
        finally:
            run(device.close())


class _HostileDevice:
    """The manner of a device, its garbage and its open transports."""

    def __init__(self, manner: Manner, rng: random.Random) -> None:
        self.manner = manner
        self._rng = rng
        self.server: asyncio.Server | None = None
        self.transports: set[asyncio.BaseTransport] = set()

    def garbage(self, request: bytes) -> bytes:
        return garbled_replies.garble(request or b"hello", self._rng)

    @property
    def babbles(self) -> bool:
        return self.manner in (Manner.BABBLES, Manner.STOPS)

    async def close(self) -> None:
        if self.server is not None:
            self.server.close()
        for transport in list(self.transports):
            if isinstance(transport, asyncio.Transport):
                transport.abort()
            else:
                transport.close()
        await asyncio.sleep(0)


class _Connection(asyncio.Protocol):
    def __init__(self, device: _HostileDevice) -> None:
        self._device = device
        self._has_sent = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport
        self._device.transports.add(transport)
        if self._device.manner is Manner.RESETS:
            transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, _RESET_ON_CLOSE
            )
            transport.abort()
            return
        loop = asyncio.get_running_loop()
        loop.call_later(PATIENCE_S, transport.abort)
        if self._device.babbles:
            loop.call_later(_GREETING_S, self._greet)

    def data_received(self, data: bytes) -> None:
        if self._device.manner is Manner.HANGS_UP:
            self._transport.close()
        elif self._device.babbles:
            self._reply(data)

    def connection_lost(self, exc: Exception | None) -> None:
        self._device.transports.discard(self._transport)

    def _greet(self) -> None:
        if not self._has_sent:
            self._reply(b"")

    def _reply(self, request: bytes) -> None:
        self._has_sent = True
        if not self._transport.is_closing():
            self._transport.write(self._device.garbage(request))
            if self._device.manner is Manner.STOPS:
                self._transport.close()


class _Datagrams(asyncio.DatagramProtocol):
    def __init__(self, device: _HostileDevice) -> None:
        self._device = device

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._device.transports.add(transport)

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self._device.babbles:
            self._transport.sendto(self._device.garbage(data), addr)


async def _serve(both: Pair, device: _HostileDevice) -> None:
    loop = asyncio.get_running_loop()
    device.server = await loop.create_server(lambda: _Connection(device), sock=both.listener)
    await loop.create_datagram_endpoint(lambda: _Datagrams(device), sock=both.datagrams)
