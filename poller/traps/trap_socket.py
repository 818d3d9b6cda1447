"""From the socket to the queue at minimum cost: unknown senders are dropped before any decoding.

A flood from unknown addresses costs one lookup each. A flood from a known address uses up the
allowance of that address.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from poller import errors
from poller.traps.sender_table import normal_address

#: Maximum size of a UDP datagram; a notification fits in one.
_MAX_DATAGRAM = 65_535
#: Datagrams read per wake-up, so that a flood cannot stall the event loop.
_READS_AT_ONCE = 64
_RECEIVE_BUFFER = 4 * 2**20


class Datagram(NamedTuple):
    """A datagram of a known sender."""

    content: bytes
    address: str
    #: The sender as the socket names it, for a response.
    origin: Any


class TrapReceiver:
    """Reads the socket into `queue`; `counters` count all datagrams and the dropped ones.

    `senders` returns the table of known addresses; `per_source` limits datagrams per second and
    address, because verifying a signature costs a thousand lookups.
    """

    def __init__(
        self,
        sock: socket.socket,
        senders: Callable[[], Mapping[str, Any]],
        counters: Counter[str],
        max_queued: int,
        per_source: int,
    ) -> None:
        self.queue: asyncio.Queue[Datagram] = asyncio.Queue(max_queued)
        self._socket = sock
        self._senders = senders
        self._counters = counters
        self._per_source = per_source
        #: Datagrams of the current second, by address.
        self._received: Counter[str] = Counter()
        self._second = 0
        self._buffer = bytearray(_MAX_DATAGRAM)

    def on_readable(self) -> None:
        """Move datagrams of known senders into the queue."""
        senders = self._senders()
        for _ in range(_READS_AT_ONCE):
            try:
                length, origin = self._socket.recvfrom_into(self._buffer)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error for an acknowledgement
                continue

            self._counters["received"] += 1
            address = _plain_address(origin[0])
            if address not in senders:
                self._counters["unknown_sender"] += 1
            elif not self._is_allowed(address):
                self._counters["dropped"] += 1
            else:
                self._put(Datagram(bytes(self._buffer[:length]), address, origin))

    def _put(self, datagram: Datagram) -> None:
        """Queue a datagram; drop it if the queue is full."""
        try:
            self.queue.put_nowait(datagram)
        except asyncio.QueueFull:
            self._counters["dropped"] += 1

    def _is_allowed(self, address: str) -> bool:
        """Whether the address has not used up its allowance of the current second."""
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second = second
            self._received.clear()
        self._received[address] += 1
        return self._received[address] <= self._per_source


def bind(host: str, port: int) -> socket.socket:
    """A non-blocking UDP socket. Raises PortInUse, InvalidSetting."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    sock = socket.socket(family, socket.SOCK_DGRAM)
    try:
        if family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # `::` accepts IPv4, too
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BUFFER)
        sock.setblocking(False)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _bind_error(error, host, port) from None
    return sock


def _plain_address(address: str) -> str:
    """An IPv4 address as it is; an IPv6 address in its normal spelling."""
    return normal_address(address) if ":" in address else address


def _bind_error(error: OSError, host: str, port: int) -> errors.ConfigError:
    if error.errno == errno.EADDRINUSE:
        return errors.PortInUse(
            f"trap_port: {host}:{port} is in use", hint="set POLLER_TRAP_PORT to another port"
        )
    if error.errno == errno.EACCES:
        return errors.InvalidSetting(
            f"trap_port: {port} needs privileges",
            hint="use a port above 1023 and redirect 162 to it, or grant CAP_NET_BIND_SERVICE",
        )
    return errors.InvalidSetting(
        f"trap_bind: cannot listen on {host}:{port}", error.strerror or "", "set POLLER_TRAP_BIND"
    )
