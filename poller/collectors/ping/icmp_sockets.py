"""Opens ICMP sockets of the kind this system allows, and reads their ancillary data (Linux)."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from dataclasses import dataclass

# Constants of Linux headers that Python does not define.
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_IP_RECVERR = 11
_IPV6_RECVERR = 25
_SOL_RAW = 255
_ICMP_FILTER = 1
_ICMPV6_FILTER = 1
#: The system has no sockets of this kind, or does not allow them.
_NOT_ALLOWED = (errno.EPERM, errno.EACCES, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
_ICMP_ORIGINS = (2, 3)  # ICMP and ICMPv6; other errors come from this system
_ERROR_MESSAGES = (
    (socket.IPPROTO_IP, _IP_RECVERR),
    (socket.IPPROTO_IPV6, _IPV6_RECVERR),
)

#: Holds about a thousand replies while this process is busy.
_RECEIVE_BYTES = 4 * 1024 * 1024
_PROTOCOL: dict[int, int] = {
    socket.AF_INET: socket.IPPROTO_ICMP,
    socket.AF_INET6: socket.IPPROTO_ICMPV6,
}
_ECHO_REPLY = 0
_ECHO_REPLY_V6 = 129
_TIMESPEC = struct.Struct("=qq")
_EXTENDED_ERROR = struct.Struct("=IBBBBII")

Ancillary = list[tuple[int, int, bytes]]


@dataclass(frozen=True, slots=True)
class IcmpSocket:
    """A non-blocking ICMP socket and the properties of its kind."""

    socket: socket.socket
    family: int
    identifier: int
    raw: bool

    @property
    def needs_checksum(self) -> bool:
        return self.raw and self.family == socket.AF_INET


def open_socket(family: int) -> IcmpSocket:
    """Open an unprivileged socket if the system allows one, else a raw socket.

    Raises PermissionError if the system allows neither, and OSError.
    """
    for open_kind in (_open_unprivileged, _open_raw):
        try:
            return open_kind(family)
        except OSError as error:
            if error.errno not in _NOT_ALLOWED:
                raise
    raise PermissionError("no socket for ICMP")


def _open_unprivileged(family: int) -> IcmpSocket:
    """Open a datagram socket, which `net.ipv4.ping_group_range` allows.

    The kernel chooses the identifier and delivers only the replies to it.
    """
    opened = socket.socket(family, socket.SOCK_DGRAM, _PROTOCOL[family])
    try:
        opened.bind(("", 0) if family == socket.AF_INET else ("::", 0))
        _configure(opened, family)
        identifier = opened.getsockname()[1]
        return IcmpSocket(opened, family, identifier, raw=False)
    except OSError:
        opened.close()
        raise


def _open_raw(family: int) -> IcmpSocket:
    """Open a raw socket, which needs CAP_NET_RAW.

    It receives the replies to every process; the identifier selects those to this one.
    """
    opened = socket.socket(family, socket.SOCK_RAW, _PROTOCOL[family])
    try:
        _receive_only_replies(opened, family)
        _configure(opened, family)
        identifier = int.from_bytes(os.urandom(2), "big")
        return IcmpSocket(opened, family, identifier, raw=True)
    except OSError:
        opened.close()
        raise


def _receive_only_replies(opened: socket.socket, family: int) -> None:
    """Set the kernel's filter, in which a set bit blocks a message type."""
    if family == socket.AF_INET:
        blocked = ~(1 << _ECHO_REPLY) & 0xFFFFFFFF
        opened.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", blocked))
        return
    words = [0xFFFFFFFF] * 8
    words[_ECHO_REPLY_V6 // 32] &= ~(1 << (_ECHO_REPLY_V6 % 32))
    opened.setsockopt(socket.IPPROTO_ICMPV6, _ICMPV6_FILTER, struct.pack("=8I", *words))


def _configure(opened: socket.socket, family: int) -> None:
    opened.setblocking(False)
    if family == socket.AF_INET:
        opened.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    else:
        opened.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
    with contextlib.suppress(OSError):  # without kernel timestamps our own clock counts
        opened.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    try:
        opened.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BYTES)
    except OSError:  # only root may exceed the system's limit
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)


def arrived_ns(ancillary: Ancillary) -> int | None:
    """Return the wall-clock time at which the kernel received a datagram, if it is known."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
            seconds, nanoseconds = _TIMESPEC.unpack(data)
            return int(seconds * 1_000_000_000 + nanoseconds)
    return None


def delivery_error(ancillary: Ancillary) -> str:
    """Return why a request was not delivered: `No route to host, says 10.0.0.1`."""
    for level, kind, data in ancillary:
        if (level, kind) not in _ERROR_MESSAGES or len(data) < _EXTENDED_ERROR.size:
            continue
        number, origin, *_ = _EXTENDED_ERROR.unpack_from(data)
        router = ""
        if origin in _ICMP_ORIGINS:
            router = _address(data[_EXTENDED_ERROR.size :])
        return f"{os.strerror(number)}, says {router}" if router else os.strerror(number)
    return "it was not delivered"


def _address(data: bytes) -> str:
    """Return the address of a `struct sockaddr`; "" if it has none."""
    family = struct.unpack_from("=H", data)[0] if len(data) >= 2 else 0
    if family == socket.AF_INET and len(data) >= 8:
        return socket.inet_ntop(family, data[4:8])
    if family == socket.AF_INET6 and len(data) >= 24:
        return socket.inet_ntop(family, data[8:24])
    return ""
