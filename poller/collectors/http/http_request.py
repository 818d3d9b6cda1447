"""One request and its answer over a connection of its own. Whatever a server sends, memory and work are bounded.

`TRANSLATION` is the only place that knows the exceptions beneath. The deadline is the caller's.
"""

from __future__ import annotations

import asyncio
import os
import socket
import ssl
from dataclasses import dataclass, field

import h11

from poller import errors
from poller.collectors import file_limit
from poller.collectors.http import http_connection
from poller.collectors.http.exchange_record import Seen
from poller.collectors.http.http_tls import Trust
from poller.collectors.http.urls import Url

#: Status line and headers together; more is no answer.
HEAD_BYTES = 64 * 1024
_READ_BYTES = 16 * 1024
#: An answer may come in so many pieces, and in one more for so many bytes of its body: each costs time.
_PIECES, _BYTES_PER_PIECE = 2_000, 64
#: So many pieces are read before others have their turn on the loop.
_BREATH = 128

TRANSLATION: dict[type[BaseException], type[errors.DeviceError]] = {
    h11.RemoteProtocolError: errors.DeviceProtocolError,
    h11.LocalProtocolError: errors.DeviceProtocolError,
    h11.ProtocolError: errors.DeviceProtocolError,
    ssl.SSLError: errors.DeviceProtocolError,
    socket.gaierror: errors.DeviceUnreachable,
    UnicodeError: errors.DeviceUnreachable,  # a name that no resolver can be asked for
    TimeoutError: errors.DeviceTimeout,
    OSError: errors.DeviceUnreachable,
}
EXPECTED = tuple(TRANSLATION)


@dataclass(frozen=True, slots=True)
class Request:
    """What to ask for, and how."""

    method: str
    body_bytes: int  # of the answer: no more of it is read
    trust: Trust
    host: str = ""  # in place of the URL's
    #: A header with a secret in it.
    authorization: tuple[str, str] | None = field(default=None, repr=False)


async def run(url: Url, request: Request, seen: Seen) -> None:
    """Ask, and fill `seen`. Raises a DeviceError; connecting.Untrusted if nothing was asked for lack of trust."""
    try:
        reader, writer = await http_connection.streams(
            url, request.host or url.host, request.trust, seen
        )
        try:
            await _ask(url, request, reader, writer, seen)
        finally:
            writer.transport.abort()  # all is read, or more than we want to hear: we do not wait for its good-bye
    except EXPECTED as error:
        raise translate(error, url, seen) from None


def translate(error: BaseException, url: Url, seen: Seen) -> errors.DeviceError:
    """An exception from beneath as one of ours. What we sent is never repeated: it may hold a secret."""
    if (short := file_limit.no_file_left(error, str(url))) is not None:
        return short
    kind = next(TRANSLATION[base] for base in type(error).__mro__ if base in TRANSLATION)
    return kind(f"{url} failed at {seen.doing}", cause=_reason(error))


def _reason(error: BaseException) -> str:
    if isinstance(error, h11.LocalProtocolError):
        return "what we would send is not HTTP"
    if isinstance(error, ssl.SSLError):
        return (error.reason or type(error).__name__).replace("_", " ").lower()
    if isinstance(error, OSError) and not isinstance(error, socket.gaierror) and error.errno:
        return os.strerror(error.errno)
    return str(error) or type(error).__name__


async def _ask(
    url: Url,
    request: Request,
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    seen: Seen,
) -> None:
    state = h11.Connection(h11.CLIENT, max_incomplete_event_size=HEAD_BYTES)
    asked = h11.Request(method=request.method, target=url.target, headers=_headers(url, request))
    with seen.phase("first_byte", "waiting for its answer"):
        writer.write((state.send(asked) or b"") + (state.send(h11.EndOfMessage()) or b""))
        first = await reader.read(_READ_BYTES)
        if not first:
            raise errors.DeviceProtocolError(f"{url} hung up without an answer")
        state.receive_data(first)
    with seen.phase("transfer", "reading its answer"):
        await _Answer(state, reader, request.body_bytes, seen).read()


def _headers(url: Url, request: Request) -> list[tuple[str, str]]:
    host = url._replace(host=request.host) if request.host else url
    headers = [
        ("Host", host.authority),
        ("User-Agent", "poller"),
        ("Accept", "*/*"),
        ("Accept-Encoding", "identity"),  # nothing is unpacked here, so nothing can explode
        ("Connection", "close"),
    ]
    return [*headers, request.authorization] if request.authorization else headers


class _Answer:
    """Reads until the end of the answer, or of what we want of it."""

    def __init__(
        self, state: h11.Connection, reader: asyncio.StreamReader, most: int, seen: Seen
    ) -> None:
        self._state, self._reader, self._most, self._seen = state, reader, most, seen
        self._pieces_left = _PIECES + most // _BYTES_PER_PIECE

    async def read(self) -> None:
        while not self._seen.complete:
            event = self._state.next_event()
            await self._count()
            if event is h11.NEED_DATA:
                self._state.receive_data(await self._reader.read(_READ_BYTES))
            elif isinstance(event, h11.Response):
                self._take_head(event)
            elif isinstance(event, h11.Data):
                self._take_body(event.data)
            elif not isinstance(
                event, h11.InformationalResponse
            ):  # its end, or it hung up where it may
                self._seen.complete = True

    async def _count(self) -> None:
        self._pieces_left -= 1
        if self._pieces_left < 0:
            raise h11.RemoteProtocolError("it sends its answer in far too many pieces")
        if self._pieces_left % _BREATH == 0:
            await asyncio.sleep(0)

    def _take_head(self, head: h11.Response) -> None:
        headers = {name: value.decode("latin-1") for name, value in head.headers}
        self._seen.status = head.status_code
        self._seen.location = headers.get(b"location", "")
        self._seen.encoding = headers.get(b"content-encoding", "").strip().lower()

    def _take_body(self, data: bytes) -> None:
        room = self._most - len(self._seen.body)
        self._seen.body += data[:room]
        if len(data) > room:
            self._seen.truncated = self._seen.complete = True
