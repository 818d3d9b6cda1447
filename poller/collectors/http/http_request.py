"""Sends one request over a new connection and reads its response, with bounded memory and work.

`TRANSLATION` is the only place that knows the exceptions of the libraries below. The caller sets
the deadline.
"""

from __future__ import annotations

import asyncio
import base64
import os
import socket
import ssl
from dataclasses import dataclass, field

import h11

from poller import errors
from poller.collectors import file_limit
from poller.collectors.api import Credential
from poller.collectors.credentials import Login, Token
from poller.collectors.http import http_connection
from poller.collectors.http.exchange_record import Exchange
from poller.collectors.http.options import HttpOptions
from poller.collectors.http.urls import Url
from poller.collectors.memory.answer_budget import STEP_BYTES, Hold
from poller.collectors.tls import Trust

#: Limit of status line and headers together.
HEAD_BYTES = 64 * 1024
_READ_BYTES = 16 * 1024
#: A response may come in this many pieces, plus one for each 64 bytes of its body.
_MAX_PIECES = 2_000
_BYTES_PER_PIECE = 64
#: Pieces read before the event loop serves other polls.
_PIECES_PER_STEP = 128

_CREDENTIALS: dict[str, type[Login] | type[Token]] = {
    "basic": Login,
    "bearer": Token,
    "header": Token,
}

TRANSLATION: dict[type[BaseException], type[errors.DeviceError]] = {
    h11.RemoteProtocolError: errors.DeviceProtocolError,
    h11.LocalProtocolError: errors.DeviceProtocolError,
    h11.ProtocolError: errors.DeviceProtocolError,
    ssl.SSLError: errors.DeviceProtocolError,
    socket.gaierror: errors.DeviceUnreachable,
    UnicodeError: errors.DeviceUnreachable,  # a name that cannot be encoded for DNS
    TimeoutError: errors.DeviceTimeout,
    OSError: errors.DeviceUnreachable,
}
EXPECTED = tuple(TRANSLATION)


@dataclass(frozen=True, slots=True)
class Request:
    """One request, and the limits of its response."""

    method: str
    max_body: int  # bytes of the response body to read
    trust: Trust
    host: str = ""  # replaces the host of the URL in the Host header and in TLS
    #: A header with a secret.
    authorization: tuple[str, str] | None = field(default=None, repr=False)
    hold: Hold | None = None  # takes the size of a large body


async def send(url: Url, request: Request, exchange: Exchange) -> None:
    """Send the request and fill the exchange.

    Raises DeviceErrors; `http_connection.Untrusted` if the certificate prevented the request.
    """
    name = request.host or url.host
    try:
        reader, writer = await http_connection.open_streams(url, name, request.trust, exchange)
        try:
            await _exchange(url, request, reader, writer, exchange)
        finally:
            writer.transport.abort()  # the rest of the response, if any, has no use
    except EXPECTED as error:
        raise translate(error, url, exchange) from None


def authorization(options: HttpOptions, credential: Credential | None) -> tuple[str, str] | None:
    """Return the header that logs in, or None with auth=none: no secret leaves by accident.

    Raises DeviceAuthFailed if the credential is of another kind, or cannot be sent.
    """
    if options.auth == "none":
        return None
    model = _CREDENTIALS[options.auth]
    if not isinstance(credential, model):
        raise errors.DeviceAuthFailed(
            f"auth={options.auth} needs a credential of kind {model.kind}; "
            "neither the target nor its device has one"
        )
    if isinstance(credential, Login):
        return "Authorization", f"Basic {_basic(credential)}"
    token = _sendable(credential)
    if options.auth == "header":
        return options.header, token
    return "Authorization", f"Bearer {token}"


def _basic(login: Login) -> str:
    if ":" in login.username:
        raise errors.DeviceAuthFailed("a user name with a colon cannot be sent (auth=basic)")
    pair = f"{login.username}:{login.password.get_secret_value()}"
    return base64.b64encode(pair.encode()).decode()


def _sendable(credential: Token) -> str:
    token = credential.token.get_secret_value()
    if not token or not token.isascii() or not token.isprintable() or token != token.strip():
        raise errors.DeviceAuthFailed("the token has characters that no header can carry")
    return token


def translate(error: BaseException, url: Url, exchange: Exchange) -> errors.DeviceError:
    """Translate an exception of a library. The text repeats nothing that was sent."""
    busy = file_limit.no_file_left(error, str(url))
    if busy is not None:
        return busy
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    return kind(f"{url} failed at {exchange.step}", cause=_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, h11.LocalProtocolError):
        return "what we would send is not HTTP"
    if isinstance(error, ssl.SSLError):
        return (error.reason or type(error).__name__).replace("_", " ").lower()
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


async def _exchange(
    url: Url,
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    exchange: Exchange,
) -> None:
    state = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
    headers = _headers(url, request)
    head = h11.Request(method=request.method, target=url.target, headers=headers)
    with exchange.phase("first_byte", "waiting for its answer"):
        sent = state.send(head) or b""
        sent += state.send(h11.EndOfMessage()) or b""
        writer.write(sent)
        first = await reader.read(_READ_BYTES)
        if not first:
            raise errors.DeviceProtocolError(f"{url} hung up without an answer")
        state.receive_data(first)
    with exchange.phase("transfer", "reading its answer"):
        await _ResponseReader(state, reader, request, exchange).read()


def _headers(url: Url, request: Request) -> list[tuple[str, str]]:
    host = url._replace(host=request.host) if request.host else url
    headers = [
        ("Host", host.authority),
        ("User-Agent", "poller"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),  # no decompression, hence no decompression bomb
        ("Connection", "close"),
    ]
    if request.authorization:
        headers.append(request.authorization)
    return headers


class _ResponseReader:
    """Reads a response until its end, or until the limit of its body."""

    def __init__(
        self,
        state: h11.Connection,
        reader: asyncio.StreamReader,
        request: Request,
        exchange: Exchange,
    ) -> None:
        self._state = state
        self._reader = reader
        self._max_body = request.max_body
        self._hold = request.hold
        self._reported = 0  # bytes that the budget of the worker knows of
        self._exchange = exchange
        self._pieces_left = _MAX_PIECES + request.max_body // _BYTES_PER_PIECE

    async def read(self) -> None:
        while not self._exchange.complete:
            event = self._state.next_event()
            await self._count_piece()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Response):
                self._take_head(event)
            elif isinstance(event, h11.Data):
                self._take_body(event.data)
            elif not isinstance(event, h11.InformationalResponse):
                self._exchange.complete = True  # end of the message, or of the connection

    async def _count_piece(self) -> None:
        self._pieces_left -= 1
        if self._pieces_left < 0:
            raise h11.RemoteProtocolError("it sends its answer in far too many pieces")
        if self._pieces_left % _PIECES_PER_STEP == 0:
            await asyncio.sleep(0)

    def _take_head(self, head: h11.Response) -> None:
        headers = {name: value.decode("latin-1") for name, value in head.headers}
        self._exchange.status = head.status_code
        self._exchange.location = headers.get(b"location", "")
        self._exchange.encoding = headers.get(b"content-encoding", "").strip().lower()

    def _take_body(self, data: bytes) -> None:
        space_left = self._max_body - len(self._exchange.body)
        self._exchange.body += data[:space_left]
        more = len(self._exchange.body) - self._reported
        if more > STEP_BYTES and self._hold is not None:
            self._reported += more
            self._hold(more)
        if len(data) > space_left:
            self._exchange.truncated = True
            self._exchange.complete = True
