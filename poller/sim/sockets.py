"""One socket for all of 127.0.0.0/8, bound to the loopback device and unreachable from outside.

A system that refuses to bind to a device gets one socket for each address instead.
"""

from __future__ import annotations

import contextlib
import errno
import resource
import socket
from collections.abc import Iterable

from poller import errors

LOOPBACK = "127."
_SO_BINDTODEVICE = 25
_LO = b"lo\0"
BACKLOG = 4096  # connections to a whole fleet at once; a full queue delays a client by a second
_BUFFER = 4 << 20
_ATTEMPTS = 20


def raise_file_limit() -> None:
    """Raise the limit of open files to the maximum, for thousands of connections."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    with contextlib.suppress(ValueError, OSError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_udp(port: int, addresses: Iterable[str]) -> list[socket.socket]:
    """Open UDP sockets for all the addresses on one port. 0 takes a free port."""
    return _open(socket.SOCK_DGRAM, port, addresses)


def open_tcp(port: int, addresses: Iterable[str]) -> list[socket.socket]:
    """Open listening TCP sockets for all the addresses on one port. 0 takes a free port."""
    return _open(socket.SOCK_STREAM, port, addresses)


def is_wildcard(sock: socket.socket) -> bool:
    return bool(sock.getsockname()[0] == "0.0.0.0")  # noqa: S104  bound to lo, see _bound_to_lo


def _open(kind: int, port: int, addresses: Iterable[str]) -> list[socket.socket]:
    first = _socket(kind)
    try:
        first.setsockopt(socket.SOL_SOCKET, _SO_BINDTODEVICE, _LO)
    except OSError:
        first.close()
        return _one_each(kind, port, list(addresses))
    try:
        _bind(first, "0.0.0.0", port)  # noqa: S104  lo only, by SO_BINDTODEVICE above
    except BaseException:
        first.close()
        raise
    return [first]


def _one_each(kind: int, port: int, addresses: list[str]) -> list[socket.socket]:
    """Open a socket for each address. Several tries may be needed for a port free on all."""
    for attempt in range(1, _ATTEMPTS + 1):
        opened: list[socket.socket] = []
        try:
            for address in addresses:
                opened.append(_socket(kind))
                shared = opened[0].getsockname()[1] if len(opened) > 1 else 0
                _bind(opened[-1], address, port or shared)
        except BaseException as error:
            for sock in opened:
                sock.close()
            if not isinstance(error, errors.PortInUse) or port or attempt == _ATTEMPTS:
                raise
        else:
            return opened
    raise AssertionError("unreachable: the last attempt returns or raises")


def _socket(kind: int) -> socket.socket:
    sock = socket.socket(socket.AF_INET, kind)
    sock.setblocking(False)
    if kind == socket.SOCK_STREAM:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    else:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _BUFFER)
    return sock


def _bind(sock: socket.socket, address: str, port: int) -> None:
    protocol = "TCP" if sock.type == socket.SOCK_STREAM else "UDP"
    try:
        sock.bind((address, port))
        if sock.type == socket.SOCK_STREAM:
            sock.listen(BACKLOG)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise errors.PortInUse(
                f"{protocol} port {port} is in use on loopback",
                hint="stop the process that listens there, or give another port (0: a free one)",
            ) from None
        if error.errno == errno.EACCES:
            raise errors.InvalidInput(
                f"{protocol} port {port} needs privileges",
                hint="give a port above 1023, or 0 for a free one",
            ) from None
        raise
