"""One HTTP connection of a sink to its store: every wait ends at the deadline of the request."""

from __future__ import annotations

import select
import socket
import ssl
import time
from collections.abc import Mapping
from contextlib import suppress
from email.utils import parsedate_to_datetime
from typing import Final, NamedTuple

import h11

from poller.collectors.http import urls
from poller.domain.failures import outcome

#: The part of an answer's body that is read. A longer answer ends the connection.
ANSWER_BYTES: Final = 64 * 1024
#: The part of an answer that is repeated in an error.
QUOTED: Final = 300
_READ_BYTES = 64 * 1024
#: A connection that was idle for longer may be half dead, so it is not used again.
_IDLE_S = 30.0
#: A longer wait that a store asks for is cut: it may be any number.
LONGEST_WAIT_S: Final = 86_400
#: Time for each of several addresses of the store before the next one is tried.
_CONNECT_S = 2.0


class Answer(NamedTuple):
    """The answer of the store to one request. Names of headers are in lower case."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def text(self) -> str:
        """The beginning of the body as one printable line."""
        return outcome.clean(self.body.decode("utf-8", errors="replace"), QUOTED)

    @property
    def retry_after_s(self) -> float | None:
        """The time that the store asks for before the next request, if it does."""
        return parse_retry_after(self.headers.get("retry-after", ""), time.time())


def parse_retry_after(value: str, now: float) -> float | None:
    """Return the seconds of a Retry-After header: a number, or a date; None if it is neither."""
    try:
        return float(min(max(0, int(value)), LONGEST_WAIT_S))
    except ValueError:
        pass
    try:
        return max(0.0, parsedate_to_datetime(value).timestamp() - now)
    except (ValueError, TypeError, OverflowError):
        return None


class StoreConnection:
    """One connection to the store. Every wait ends at the deadline of the request."""

    def __init__(self, url: urls.Url, context: ssl.SSLContext | None, until_mono: float) -> None:
        self.has_answered = False
        self.is_reusable = False
        self._context = context
        self._h11 = h11.Connection(h11.CLIENT)
        self._used_mono = time.monotonic()
        self._socket = _connected(url, until_mono)
        if context is None:
            return
        try:
            self._socket.settimeout(_left_s(until_mono))
            self._socket = context.wrap_socket(self._socket, server_hostname=url.host)
        except BaseException:
            self._socket.close()
            raise

    def is_usable(self, context: ssl.SSLContext | None) -> bool:
        """Whether another request can be sent: not idle for long, and made with this context.

        A connection with bytes that no request asked for is of no use: they would be taken for the
        next answer. The end of the connection is such a byte, too.
        """
        if self._context is not context or time.monotonic() - self._used_mono >= _IDLE_S:
            return False
        has_unread = bool(self._h11.trailing_data[0])
        return not has_unread and not _is_readable(self._socket)

    def exchange(self, request: h11.Request, body: bytes, until_mono: float) -> Answer:
        """Send a request and read its answer."""
        self.has_answered = False
        if self._h11.our_state is not h11.IDLE:
            self._h11.start_next_cycle()
        # Never None: only ConnectionClosed has no bytes.
        head = self._h11.send(request) or b""
        end = (self._h11.send(h11.Data(body)) or b"") + (self._h11.send(h11.EndOfMessage()) or b"")
        self._socket.settimeout(_left_s(until_mono))
        with suppress(ConnectionError):
            # A store that refuses a large body answers and closes before it has read all of it.
            self._socket.sendall(head + end)
        answer = self._read_answer(until_mono)
        self._used_mono = time.monotonic()
        is_done = self._h11.our_state is h11.DONE and self._h11.their_state is h11.DONE
        self.is_reusable = is_done
        return answer

    def _read_answer(self, until_mono: float) -> Answer:
        status, headers, body = 0, {}, bytearray()
        while True:
            event = self._next_event(until_mono)
            if isinstance(event, h11.Response):
                status = event.status_code
                headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
            elif isinstance(event, h11.Data):
                body += event.data
                if len(body) > ANSWER_BYTES:
                    return Answer(status, headers, bytes(body[:ANSWER_BYTES]))
            elif isinstance(event, h11.EndOfMessage):
                return Answer(status, headers, bytes(body))
            elif isinstance(event, h11.ConnectionClosed):
                raise ConnectionResetError("the store closed the connection without an answer")

    def _next_event(self, until_mono: float) -> object:
        while True:
            event = self._h11.next_event()
            if event is not h11.NEED_DATA:
                return event
            self._socket.settimeout(_left_s(until_mono))
            received = self._socket.recv(_READ_BYTES)
            if not received and self._h11.their_state in (h11.IDLE, h11.SEND_RESPONSE):
                raise ConnectionResetError("the store closed the connection without an answer")
            self.has_answered = self.has_answered or bool(received)
            self._h11.receive_data(received)

    def close(self) -> None:
        with suppress(OSError):
            self._socket.close()


def _is_readable(connection: socket.socket) -> bool:
    poll = select.poll()
    poll.register(connection, select.POLLIN)
    return bool(poll.poll(0))


def _left_s(until_mono: float) -> float:
    """Return the time until the deadline. Raises TimeoutError after it."""
    left_s = until_mono - time.monotonic()
    if left_s <= 0:
        raise TimeoutError
    return left_s


def _connected(url: urls.Url, until_mono: float) -> socket.socket:
    """Connect to the first address of the host that accepts. Raises OSError of the last one."""
    try:
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    except UnicodeError:
        raise OSError("that is no name of a host") from None
    failure: OSError = OSError("the name of the host has no address")
    for number, (family, kind, protocol, _, address) in enumerate(found, 1):
        connecting = socket.socket(family, kind, protocol)
        left_s = _left_s(until_mono)
        connecting.settimeout(left_s if number == len(found) else min(left_s, _CONNECT_S))
        try:
            connecting.connect(address)
            connecting.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return connecting
        except OSError as error:
            connecting.close()
            failure = error
    raise failure
