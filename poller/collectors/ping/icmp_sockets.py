"""ICMP sockets: which kind does this system let us have? Opened here, with all that Linux can tell about an answer."""

from __future__ import annotations

import contextlib
import errno
import os
import socket
import struct
from dataclasses import dataclass

# From Linux' headers; Python does not name them.
_SO_RCVBUFFORCE = 33
_SO_TIMESTAMPNS = 35
_IP_RECVERR, _IPV6_RECVERR = 11, 25
_SOL_RAW, _ICMP_FILTER, _ICMPV6_FILTER = 255, 1, 1
#: The system has no sockets of this kind, or none for us.
_NOT_FOR_US = (errno.EPERM, errno.EACCES, errno.EPROTONOSUPPORT, errno.ESOCKTNOSUPPORT)
_ICMP_ORIGINS = (2, 3)  # ICMP and ICMPv6: others are our own system's

#: A thousand answers may come while this process is busy with something else.
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
class Door:
    """A socket that does not block, and what is special about its kind."""

    socket: socket.socket
    family: int
    identifier: int
    raw: bool

    @property
    def sums(self) -> bool:
        """Must we make the checksum?"""
        return self.raw and self.family == socket.AF_INET


def opened(family: int) -> Door:
    """The kind that needs no privilege if there is one for us, else a raw one.

    Raises PermissionError where neither is, and OSError.
    """
    for kind in (_unprivileged, _raw):
        try:
            return kind(family)
        except OSError as error:
            if error.errno not in _NOT_FOR_US:
                raise
    raise PermissionError("no socket for ICMP")


def _unprivileged(family: int) -> Door:
    """`net.ipv4.ping_group_range` says who may. The kernel chooses the identifier, and hands over only its answers."""
    made = socket.socket(family, socket.SOCK_DGRAM, _PROTOCOL[family])
    try:
        made.bind(("", 0) if family == socket.AF_INET else ("::", 0))
        _prepare(made, family)
        return Door(made, family, made.getsockname()[1], raw=False)
    except OSError:
        made.close()
        raise


def _raw(family: int) -> Door:
    """For root, or CAP_NET_RAW. It hears the answers to everybody's questions; ours have our identifier."""
    made = socket.socket(family, socket.SOCK_RAW, _PROTOCOL[family])
    try:
        _hear_only_answers(made, family)
        _prepare(made, family)
        return Door(made, family, int.from_bytes(os.urandom(2), "big"), raw=True)
    except OSError:
        made.close()
        raise


def _hear_only_answers(made: socket.socket, family: int) -> None:
    """A set bit keeps a type out."""
    if family == socket.AF_INET:
        made.setsockopt(_SOL_RAW, _ICMP_FILTER, struct.pack("=I", ~(1 << _ECHO_REPLY) & 0xFFFFFFFF))
        return
    words = [0xFFFFFFFF] * 8
    words[_ECHO_REPLY_V6 // 32] &= ~(1 << (_ECHO_REPLY_V6 % 32))
    made.setsockopt(socket.IPPROTO_ICMPV6, _ICMPV6_FILTER, struct.pack("=8I", *words))


def _prepare(made: socket.socket, family: int) -> None:
    made.setblocking(False)
    if family == socket.AF_INET:
        made.setsockopt(socket.IPPROTO_IP, _IP_RECVERR, 1)
    else:
        made.setsockopt(socket.IPPROTO_IPV6, _IPV6_RECVERR, 1)
    with contextlib.suppress(OSError):  # without it we look at the clock ourselves
        made.setsockopt(socket.SOL_SOCKET, _SO_TIMESTAMPNS, 1)
    try:
        made.setsockopt(socket.SOL_SOCKET, _SO_RCVBUFFORCE, _RECEIVE_BYTES)
    except OSError:  # only root may go beyond the system's limit
        made.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _RECEIVE_BYTES)


def arrived_ns(ancillary: Ancillary) -> int | None:
    """When the kernel got the datagram, by the clock of the day; it may have waited for us since."""
    for level, kind, data in ancillary:
        if level == socket.SOL_SOCKET and kind == _SO_TIMESTAMPNS and len(data) == _TIMESPEC.size:
            seconds, rest = _TIMESPEC.unpack(data)
            return int(seconds * 1_000_000_000 + rest)
    return None


def complaint(ancillary: Ancillary) -> str:
    """What a router, or our own system, says of a question it did not deliver: `No route to host, says 10.0.0.1`."""
    for level, kind, data in ancillary:
        if (level, kind) in (
            (socket.IPPROTO_IP, _IP_RECVERR),
            (socket.IPPROTO_IPV6, _IPV6_RECVERR),
        ):
            if len(data) < _EXTENDED_ERROR.size:
                continue
            number, origin, *_ = _EXTENDED_ERROR.unpack_from(data)
            offender = _address(data[_EXTENDED_ERROR.size :]) if origin in _ICMP_ORIGINS else ""
            return os.strerror(number) + (f", says {offender}" if offender else "")
    return "it was not delivered"


def _address(data: bytes) -> str:
    """Of a struct sockaddr: the address, if it has one."""
    family = struct.unpack_from("=H", data)[0] if len(data) >= 2 else 0
    if family == socket.AF_INET and len(data) >= 8:
        return socket.inet_ntop(family, data[4:8])
    if family == socket.AF_INET6 and len(data) >= 24:
        return socket.inet_ntop(family, data[8:24])
    return ""
