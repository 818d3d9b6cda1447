"""The default engine: gufo-snmp (Rust) at its socket level, one call per datagram, not per row.

`_TRANSLATION` is the only place that knows the library's exceptions. Our codec reads what the
library cannot: exact types, long responses, odd encodings.
"""

from __future__ import annotations

import socket
from collections.abc import Callable, Sequence
from typing import Any

import gufo.snmp
from gufo.snmp import _fast

from poller import errors
from poller.collectors.snmp.engines.engine_protocol import ErrorStatus, Garbled, Page, Row
from poller.collectors.snmp.wire import codec
from poller.collectors.snmp.wire.codec import Octets
from poller.collectors.snmp.wire.exchange import CodecLink, Framing, socket_error

#: Longest response that the library can take; longer ones arrive cut off.
BUFFER_BYTES = 4080
#: Octets that hold the header of a message with a community of up to about 200 octets.
HEAD_BYTES = 256
_PEEK = int(socket.MSG_PEEK | socket.MSG_TRUNC)


class Oversize(Garbled):
    """The response does not fit the library's buffer."""


class Undecodable(Garbled):
    """The library cannot decode the response, or panicked over it."""


_TRANSLATION: dict[type[Exception], type[errors.DeviceError]] = {
    gufo.snmp.SnmpAuthError: errors.DeviceAuthFailed,
    gufo.snmp.SnmpDecodeError: Undecodable,
    gufo.snmp.SnmpEncodeError: errors.DeviceProtocolError,
    gufo.snmp.NoSuchInstance: errors.DeviceUnsupported,
    gufo.snmp.SnmpError: errors.DeviceProtocolError,
    OSError: errors.DeviceUnreachable,  # see `socket_error`
    ValueError: errors.DeviceUnsupported,
    RuntimeError: errors.DeviceProtocolError,
}
EXPECTED = tuple(_TRANSLATION)


def translate(error: Exception, agent: str) -> errors.DeviceError:
    """The library's exception as one of ours, by the nearest class of its ancestry."""
    if isinstance(error, OSError):
        return socket_error(error, agent)

    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    if kind is errors.DeviceAuthFailed:
        return kind(f"{agent} refused our SNMP credential", cause=str(error))
    # What follows a colon may be a piece of the datagram, and a datagram contains the community.
    return kind(f"SNMP with {agent} failed", cause=str(error).partition(":")[0])


def endpoint(address: str, port: int) -> str:
    """Address and port as the library takes them."""
    if ":" in address:
        return f"[{address}]:{port}"
    return f"{address}:{port}"


class GufoLink(CodecLink):
    """One UDP socket of the library to one agent, for one poll at a time."""

    def __init__(
        self, library_socket: Any, agent: str, framing: Framing, *, ipv6: bool, bulk: bool = True
    ) -> None:
        self._library_socket = library_socket
        # A second view of the descriptor, to inspect a datagram before the library consumes it.
        family = socket.AF_INET6 if ipv6 else socket.AF_INET
        view = socket.socket(family, socket.SOCK_DGRAM, 0, fileno=library_socket.get_fd())
        super().__init__(view, agent, framing, bulk=bulk)
        self.exact = False
        self.codec_only = False
        #: Responses that the library could not decode.
        self._undecodable = 0
        #: Datagrams that the library did not accept as the response.
        self._ignored = 0
        #: Subtrees with responses that exceed the library's buffer.
        self._oversize_roots: set[str] = set()
        #: First octets of the last datagram, and its length.
        self._head = bytearray(HEAD_BYTES)
        self._length = 0

    async def page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        if self.exact or self.codec_only or root in self._oversize_roots:
            return await super().page(cursor, root, repetitions, wait_s)
        try:
            return await self._library_page(cursor, root, repetitions, wait_s)
        except Oversize:
            self._oversize_roots.add(root)
        except Undecodable:
            self._count_undecodable()
        left_s = self._deadline - self._loop.time()
        return await super().page(cursor, root, repetitions, left_s)

    async def _library_page(self, cursor: str, root: str, repetitions: int, wait_s: float) -> Page:
        """A GETBULK, or in SNMP v1 a GETNEXT, by the library."""
        library = self._library_socket
        within = _fast.GetIter(root)
        if self._bulk:
            request = _fast.GetIter(cursor, repetitions)
            rows = await self._library_exchange(
                library.send_get_bulk, request, library.recv_get_bulk, within, wait_s
            )
        else:
            request = _fast.GetIter(cursor)
            row = await self._library_exchange(
                library.send_get_next, request, library.recv_get_next, within, wait_s
            )
            rows = row and [row]

        if not rows:
            self._check_status()
            return Page((), ended=True)
        if rows[-1] is None:  # the library's mark for the end of the subtree
            rows.pop()
            return Page(rows, ended=True)
        return Page(rows, ended=False)

    async def get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        if self.exact or self.codec_only:
            return await super().get(oids, wait_s)
        try:
            return await self._library_get(oids, wait_s)
        except Oversize:
            pass
        except Undecodable:
            self._count_undecodable()
        return await super().get(oids, self._deadline - self._loop.time())

    async def _library_get(self, oids: Sequence[str], wait_s: float) -> Sequence[Row]:
        """A GET by the library."""
        library = self._library_socket
        values = await self._library_exchange(
            library.send_get_many, list(oids), library.recv_get_many, None, wait_s
        )
        if len(values) < len(oids):
            self._check_status()
        return list(values.items())

    async def _library_exchange(
        self,
        send: Callable[..., None],
        request: Any,
        receive: Callable[..., Any],
        context: Any,
        wait_s: float,
    ) -> Any:
        """Send one datagram and wait for its response; None if the library finds nothing more."""
        deadline = self._loop.time() + wait_s
        arguments = () if context is None else (context,)
        try:
            _send(send, request)
            while True:
                await self._wait_readable(deadline)
                if not self._inspect():
                    continue
                try:
                    return receive(*arguments)
                except BlockingIOError:  # foreign, or the response to an earlier attempt
                    self._ignored += 1
        except StopAsyncIteration:
            return None
        except EXPECTED as error:
            raise translate(error, self._agent) from None
        except BaseException as error:  # a Rust panic is no Exception
            if type(error).__name__ != "PanicException":
                raise
            self.codec_only = True
            raise Undecodable(f"SNMP with {self._agent} failed", cause="malformed answer") from None

    def _count_undecodable(self) -> None:
        """The first failure may be a damaged datagram; after a second one only the codec reads."""
        self._undecodable += 1
        if self._undecodable > 1:
            self.codec_only = True

    def _inspect(self) -> bool:
        """Keep from the library what it cannot take. Raises Oversize, Garbled and ICMP errors.

        False when no datagram is left. The library must not read then either: a datagram that
        arrives in between would reach it without this check.
        """
        try:
            length = self._length = self._socket.recv_into(self._head, 0, _PEEK)
        except BlockingIOError:
            return False
        self.received += length
        if length <= BUFFER_BYTES and is_whole(self._head, length):
            return True

        self._socket.recv(1)  # consume it
        if length > BUFFER_BYTES:
            fault = f"an answer of {length} bytes; this engine takes {BUFFER_BYTES}"
            raise Oversize(f"SNMP with {self._agent} failed", cause=fault)
        fault = "the answer is not one whole SNMP message"
        raise Garbled(f"SNMP with {self._agent} failed", cause=fault)

    def _check_status(self) -> None:
        """Read the error status, which the library hides, from the datagram it just consumed."""
        status = error_status(self._head, self._length)
        if status:
            raise ErrorStatus(status)

    def close(self) -> None:
        """Idempotent."""
        if self._library_socket is not None:
            self._stop_reading()
            self._socket.detach()  # the library closes the descriptor
            self._library_socket = None


def is_whole(head: Octets, length: int) -> bool:
    """Whether a datagram of `length` octets is one SNMP message of exactly that length.

    `head` holds at least its first octets. Runs before every decode, so it checks nothing else.
    """
    if length < 4 or head[0] != codec.SEQUENCE:
        return False

    first = head[1]
    if first < 0x80:
        return first + 2 == length

    size = first & 0x7F
    if not 0 < size <= 3:
        return False
    body = int.from_bytes(head[2 : 2 + size], "big")
    return body + 2 + size == length


def error_status(head: Octets, length: int) -> int:
    """Error status of a community response of `length` octets that starts with `head`.

    0 means no error, or no response.
    """
    try:
        at, end = codec.expect(head, 0, length, codec.SEQUENCE)
        _, at = codec.expect(head, at, end, codec.INTEGER)  # version
        _, at = codec.expect(head, at, end, codec.OCTETS)  # community
        at, end = codec.expect(head, at, end, codec.RESPONSE)
        _, at = codec.expect(head, at, end, codec.INTEGER)  # request id
        status, _ = codec.read_integer(head, at, end)
    except (IndexError, codec.Malformed):
        return 0
    return max(0, status)


def _send(send: Callable[..., None], request: Any) -> None:
    """Send one datagram through the library."""
    try:
        send() if request is None else send(request)
    except BlockingIOError:
        return  # a full send buffer equals a lost packet: the walker retries
