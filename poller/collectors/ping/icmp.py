"""Sends all ICMP pings of a process over one socket and assigns each reply to its request.

A reply counts if its sender, identifier, number and data are those of a pending request. One
reader on the event loop waits for replies; an idle socket costs nothing.
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from poller.collectors.ping import icmp_packet, icmp_sockets
from poller.collectors.ping.icmp_packet import Echo
from poller.collectors.ping.options import MIN_BYTES
from poller.collectors.ping.round_trips import Pace, RoundTrips

#: Datagrams read before the event loop serves other polls.
_DATAGRAMS_PER_STEP = 256
#: Requests sent before the replies are read: the kernel's buffer is limited.
_READ_AFTER = 32
_MAX_DATAGRAM = 9000 + 128
_BUFFER_FULL = (errno.EAGAIN, errno.ENOBUFS)
_FULL_PAUSE_S = 0.005
_MAX_FULL_PAUSES = 40
#: Tolerated difference between the kernel's clock and ours.
_CLOCK_TOLERANCE_S = 0.001

_Key = tuple[str, int]  # address, sequence number


@dataclass(slots=True, eq=False)
class _EchoRequest:
    """One pending echo request."""

    payload: bytes
    on_reply: Callable[[float], None]
    on_error: Callable[[str], None]
    sent_at: float = 0.0  # perf_counter: the clock of uvloop counts milliseconds only
    sent_ns: int = 0  # wall clock, like the kernel's timestamp of the reply


class IcmpPinger:
    """The ICMP socket of one address family, on one event loop.

    Raises OSError if the system does not allow a socket.
    """

    def __init__(self, family: int) -> None:
        self._icmp = icmp_sockets.open_socket(family)
        self._pending: dict[_Key, _EchoRequest] = {}
        self._sequence = int.from_bytes(os.urandom(2), "big")
        self._sent_since_read = 0

        # The loop watches an epoll object: libuv stops watching a socket that has an error.
        self._events = select.epoll()
        self._events.register(self._icmp.socket, select.EPOLLIN)
        self.loop = asyncio.get_running_loop()
        self.loop.add_reader(self._events.fileno(), self._on_events)

    def close(self) -> None:
        if not self.loop.is_closed():
            self.loop.remove_reader(self._events.fileno())
        self._events.close()
        self._icmp.socket.close()

    async def burst(self, address: tuple[Any, ...], pace: Pace, size: int) -> RoundTrips:
        """Send `pace.count` requests and wait for the replies, no longer than the pace allows."""
        burst = _Burst(self, address, pace, size)
        try:
            return await burst.run()
        finally:
            for key, request in burst.requests:
                # A later request may have the same key by now.
                if self._pending.get(key) is request:
                    del self._pending[key]

    def send(self, address: tuple[Any, ...], request: _EchoRequest) -> _Key:
        """Send a request and return the key of its reply. Raises OSError."""
        key = self._free_key(address[0])
        echo = Echo(self._icmp.identifier, key[1], request.payload)
        data = icmp_packet.encode_request(
            self._icmp.family, echo, with_checksum=self._icmp.needs_checksum
        )
        request.sent_at = time.perf_counter()
        request.sent_ns = time.time_ns()
        self._pending[key] = request

        try:
            self._send_datagram(data, address)
        except OSError:
            del self._pending[key]
            raise
        self._sent_since_read += 1
        if self._sent_since_read >= _READ_AFTER:
            self._read_replies()
        return key

    def _free_key(self, address: str) -> _Key:
        while True:
            self._sequence = (self._sequence + 1) & 0xFFFF
            if (address, self._sequence) not in self._pending:
                return address, self._sequence

    def _send_datagram(self, data: bytes, address: tuple[Any, ...]) -> None:
        try:
            self._icmp.socket.sendto(data, address)
        except OSError as error:
            if error.errno in _BUFFER_FULL:
                raise
            # The error may belong to another request: the kernel reports it once, to any call.
            self._icmp.socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
            self._icmp.socket.sendto(data, address)

    def _on_events(self) -> None:
        for _, events in self._events.poll(0):
            if events & select.EPOLLERR:
                self._read_errors()
            self._read_replies()

    def _read_replies(self) -> None:
        self._sent_since_read = 0
        for _ in range(_DATAGRAMS_PER_STEP):
            try:
                data, ancillary, _, sender = self._icmp.socket.recvmsg(_MAX_DATAGRAM, 256)
            except BlockingIOError:
                return
            except OSError:  # a delivery error; `_read_errors` reads it in full
                continue
            self._take_reply(data, ancillary, sender)

    def _take_reply(
        self, data: bytes, ancillary: icmp_sockets.Ancillary, sender: tuple[Any, ...]
    ) -> None:
        if self._icmp.needs_checksum:
            data = icmp_packet.without_ip_header(data)
        echo = icmp_packet.decode_reply(self._icmp.family, data)
        if echo is None or echo.identifier != self._icmp.identifier:
            return

        key = (sender[0], echo.sequence)
        request = self._pending.get(key)
        if request is not None and request.payload == echo.payload:
            del self._pending[key]
            request.on_reply(_round_trip_s(request, icmp_sockets.arrived_ns(ancillary)))

    def _read_errors(self) -> None:
        for _ in range(_DATAGRAMS_PER_STEP):
            try:
                data, ancillary, _, address = self._icmp.socket.recvmsg(
                    _MAX_DATAGRAM, 512, socket.MSG_ERRQUEUE
                )
            except OSError:
                return
            echo = icmp_packet.decode_request(self._icmp.family, data)
            if echo is None or echo.identifier != self._icmp.identifier or not address:
                continue
            request = self._pending.pop((address[0], echo.sequence), None)
            if request is not None:
                request.on_error(icmp_sockets.delivery_error(ancillary))


def _round_trip_s(request: _EchoRequest, arrived_ns: int | None) -> float:
    """Return the round trip by the kernel's clock, which excludes our own delays.

    Our monotonic clock counts instead if the wall clock was set meanwhile.
    """
    elapsed_s = time.perf_counter() - request.sent_at
    if arrived_ns is None:
        return elapsed_s
    kernel_s = (arrived_ns - request.sent_ns) / 1_000_000_000
    plausible = 0 < kernel_s <= elapsed_s + _CLOCK_TOLERANCE_S
    return kernel_s if plausible else elapsed_s


class _Burst:
    """The echo requests of one poll."""

    def __init__(self, pinger: IcmpPinger, address: tuple[Any, ...], pace: Pace, size: int) -> None:
        self.requests: list[tuple[_Key, _EchoRequest]] = []
        self._pinger = pinger
        self._address = address
        self._pace = pace
        self._padding = bytes(size - MIN_BYTES)
        self._seconds: list[float] = []
        self._error = ""
        self._pending_count = pace.count
        self._all_done: asyncio.Future[None] = pinger.loop.create_future()

    async def run(self) -> RoundTrips:
        loop = self._pinger.loop
        started = loop.time()
        for number in range(self._pace.count):
            if number:
                send_at = started + number * self._pace.interval_s
                await asyncio.sleep(send_at - loop.time())
            await self._send()
        try:
            async with asyncio.timeout(self._pace.timeout_s):
                await self._all_done
        except TimeoutError:
            pass
        return RoundTrips(self._pace.count, self._seconds, self._error)

    async def _send(self) -> None:
        payload = os.urandom(MIN_BYTES) + self._padding
        request = _EchoRequest(payload, self._on_reply, self._on_error)
        for _ in range(_MAX_FULL_PAUSES):
            try:
                key = self._pinger.send(self._address, request)
                self.requests.append((key, request))
                return
            except OSError as error:
                if error.errno not in _BUFFER_FULL:
                    self._on_error(os.strerror(error.errno or 0))
                    return
            await asyncio.sleep(_FULL_PAUSE_S)
        self._on_error("this system's network is too busy to send")

    def _on_reply(self, round_trip_s: float) -> None:
        if round_trip_s <= self._pace.timeout_s:  # a later reply counts as lost
            self._seconds.append(round_trip_s)
        self._count_done()

    def _on_error(self, text: str) -> None:
        self._error = text
        self._count_done()

    def _count_done(self) -> None:
        self._pending_count -= 1
        if not self._pending_count and not self._all_done.done():
            self._all_done.set_result(None)
