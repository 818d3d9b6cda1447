"""From the socket to the queue, as cheaply as can be: what nobody here knows is dropped before it is looked at.

A flood from unknown addresses costs a lookup each; one from a known address costs that address its own allowance.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from poller import errors
from poller.traps.sender_table import normal

#: A notification fits one datagram.
LONGEST = 65_535
#: Datagrams taken at a time, so that a flood stops nothing else in this process.
AT_ONCE = 64
RECEIVE_BUFFER = 4 * 2**20


class Datagram(NamedTuple):
    content: bytes
    address: str
    origin: Any  # what the socket calls it


class Intake:
    """`waiting` has what is to be judged; `count` is told what became of the rest."""

    def __init__(
        self,
        sock: socket.socket,
        known: Callable[[], Mapping[str, Any]],
        count: Counter[str],
        longest: int,
        per_source: int,
    ) -> None:
        self.waiting: asyncio.Queue[Datagram] = asyncio.Queue(longest)
        self._sock = sock
        self._known = known
        self._count = count
        self._per_source = per_source
        self._taken: Counter[str] = Counter()
        self._second = 0
        self._buffer = bytearray(LONGEST)

    def on_readable(self) -> None:
        known = self._known()
        for _ in range(AT_ONCE):
            try:
                length, origin = self._sock.recvfrom_into(self._buffer)
            except BlockingIOError:
                return
            except OSError:  # an ICMP error of an answer we sent: of no interest
                continue
            self._count["received"] += 1
            address = _plain(origin[0])
            if address not in known:
                self._count["unknown_sender"] += 1
            elif not self._allowed(address):
                self._count["dropped"] += 1
            else:
                self._put(Datagram(bytes(self._buffer[:length]), address, origin))

    def _put(self, datagram: Datagram) -> None:
        try:
            self.waiting.put_nowait(datagram)
        except asyncio.QueueFull:
            self._count["dropped"] += 1

    def _allowed(self, address: str) -> bool:
        """Each address may send so many a second: checking a signature takes a thousand times a lookup."""
        second = int(asyncio.get_running_loop().time())
        if second != self._second:
            self._second = second
            self._taken.clear()
        self._taken[address] += 1
        return self._taken[address] <= self._per_source


def bind(host: str, port: int) -> socket.socket:
    """Raises PortInUse, InvalidSetting."""
    sock = socket.socket(socket.AF_INET6 if ":" in host else socket.AF_INET, socket.SOCK_DGRAM)
    try:
        if ":" in host:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)  # `::` hears IPv4, too
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, RECEIVE_BUFFER)
        sock.setblocking(False)
        sock.bind((host, port))
    except OSError as error:
        sock.close()
        raise _refusal(error, host, port) from None
    return sock


def _plain(address: str) -> str:
    """IPv4 needs no second look; the rest may be spelled in several ways."""
    return normal(address) if ":" in address else address


def _refusal(error: OSError, host: str, port: int) -> errors.ConfigError:
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
