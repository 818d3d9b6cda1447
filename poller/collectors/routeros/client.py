"""librouteros made safe: text stays text, nothing is logged, memory is bounded, no answer is taken for another.

`_TRANSLATION` is the only place that knows the library's exceptions. Deadlines are the caller's; after any
error but a trap the connection is useless (the library loses step with the router) and must be closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import socket
import ssl
from collections.abc import Sequence
from typing import Any

import librouteros.protocol
from librouteros import exceptions
from librouteros.api import AsyncApi
from librouteros.connections import AsyncSocketTransport
from librouteros.protocol import AsyncApiProtocol

from poller import errors
from poller.collectors.api import SessionLost
from poller.collectors.routeros.shapes import Row

#: More than any router's menu; a peer that sends more is not answering us.
MAX_BYTES = 64 * 1024 * 1024
_CLOSE_S = 0.2
#: One byte, one character: what the library reads is what was sent, and we decode it ourselves.
_WIRE = "latin-1"
_NO_PERMISSION, _NO_SUCH = "not enough permissions", "no such command"

_TRANSLATION: dict[type[BaseException], type[errors.DeviceError]] = {
    exceptions.ConnectionClosed: errors.DeviceUnreachable,
    exceptions.FatalError: errors.DeviceProtocolError,
    exceptions.TrapError: errors.DeviceProtocolError,
    exceptions.MultiTrapError: errors.DeviceProtocolError,
    exceptions.ProtocolError: errors.DeviceProtocolError,
    exceptions.LibRouterosError: errors.DeviceProtocolError,
    ssl.SSLError: errors.DeviceProtocolError,
    socket.gaierror: errors.DeviceUnreachable,
    TimeoutError: errors.DeviceTimeout,
    OSError: errors.DeviceUnreachable,
    # What the library lets slip when a router's answer is not what it expects.
    ValueError: errors.DeviceProtocolError,
    TypeError: errors.DeviceProtocolError,
    LookupError: errors.DeviceProtocolError,
}
EXPECTED = tuple(_TRANSLATION)


def translate(error: BaseException, router: str, doing: str) -> errors.DeviceError:
    """An exception of the library, or of the socket beneath it, as one of ours."""
    kind = next(_TRANSLATION[base] for base in type(error).__mro__ if base in _TRANSLATION)
    if isinstance(error, exceptions.TrapError | exceptions.MultiTrapError):
        kind = _kind_of_trap(str(error))
    text = str(error) or type(error).__name__
    hint = "set ca_file, or insecure=true" if isinstance(error, ssl.SSLCertVerificationError) else ""
    return kind(f"{router} failed at {doing}", cause=text, hint=hint)


def _kind_of_trap(text: str) -> type[errors.DeviceError]:
    if _NO_PERMISSION in text:
        return errors.DeviceAuthFailed
    return errors.DeviceUnsupported if _NO_SUCH in text else errors.DeviceProtocolError


def _say_nothing(direction: str, *sentence: str) -> None:
    """In place of the library's log, which writes passwords at DEBUG level and costs time at every level."""


librouteros.protocol.log = _say_nothing
logging.getLogger("librouteros").addFilter(lambda record: False)


class _OutOfTurn(exceptions.ProtocolError):  # type: ignore[misc]
    """The router spoke when it was not asked."""


class _Reader(asyncio.StreamReader):
    """Counts what came."""

    received = 0

    def feed_data(self, data: Any) -> None:
        self.received += len(data)
        super().feed_data(data)


class _Transport(AsyncSocketTransport):  # type: ignore[misc]
    """Refuses to read more than any router says, and knows whether something was said that nobody read."""

    reader: _Reader
    _taken = 0
    _most = MAX_BYTES

    async def read(self, length: int) -> bytes:
        self._taken += length
        if self._taken > self._most:
            raise exceptions.ProtocolError(f"the answer is longer than {MAX_BYTES} bytes")
        return bytes(await super().read(length))

    def begin(self) -> None:
        """Before a command. Raises when there is something left of those before it, or nobody to answer."""
        self._most = self._taken + MAX_BYTES
        if self.reader.received != self._taken:  # it would be taken for the answer
            raise _OutOfTurn("it said something that nobody asked for")
        if self.reader.at_eof() or self.writer.transport.is_closing():  # hung up, or reset
            raise exceptions.ConnectionClosed("it hung up")


class _Api(AsyncApi):  # type: ignore[misc]
    """Rows of text: the library's own would turn a name like `007` or `yes` into something else."""

    heard = 0  # sentences

    async def readSentence(self) -> tuple[str, dict[str, str]]:
        while True:
            try:
                reply, words = await self.protocol.readSentence()
                self.heard += 1
                break
            except IndexError:  # an empty sentence; they are to be ignored
                continue
        fields = dict(_split(word) for word in words)
        if reply == "!trap":  # the library takes exactly these two
            fields = {"message": fields.get("message", "no reason given"), "category": fields.get("category", "")}
        return reply, fields


def _split(word: str) -> tuple[str, str]:
    """`=name=value` to name and value, in whatever encoding the comment was written."""
    _, name, value = word.split("=", 2)
    return name, decode(value)


def decode(text: str) -> str:
    """UTF-8 if it is; else each byte is a Latin-1 character, as old Windows tools leave them."""
    if text.isascii():
        return text
    try:
        return text.encode(_WIRE).decode()
    except UnicodeDecodeError:
        return text


def encode(text: str) -> str:
    return text.encode().decode(_WIRE)


class Router:
    """A connection to one router. `close` must be called, whatever happened."""

    def __init__(self, name: str, transport: _Transport) -> None:
        self._name = name
        self._transport = transport
        self._writer: asyncio.StreamWriter = transport.writer
        self._api = _Api(protocol=AsyncApiProtocol(transport=transport, encoding=_WIRE, timeout=None))
        self._mark = (-1, -1)  # sentences and bytes that had come when the poll began

    def begin(self) -> None:
        """A poll begins. Until something is read, an end of the connection is no news of the router: SessionLost."""
        self._mark = (self._api.heard, self._transport.reader.received)

    async def log_in(self, username: str, password: str) -> None:
        """The login of 6.43 and later; an older router answers with a challenge, which we then take up."""
        try:
            rows = await self._call("/login", name=encode(username), password=encode(password))
            if rows and "ret" in rows[0]:
                await self._call("/login", name=encode(username), response=_response(rows[0]["ret"], password))
        except (exceptions.TrapError, exceptions.MultiTrapError) as error:
            raise errors.DeviceAuthFailed(f"{self._name} refused the login", cause=str(error)) from None
        except EXPECTED as error:
            raise translate(error, self._name, "login") from None

    async def print(self, path: str, proplist: str) -> Sequence[Row]:
        """All rows of a menu, with these properties."""
        try:
            return await self._call(f"{path}/print", **{".proplist": proplist})
        except EXPECTED as error:
            if self._was_over(error):
                raise SessionLost(f"{self._name} has ended the session", cause=str(error)) from None
            raise translate(error, self._name, path) from None

    def _was_over(self, error: BaseException) -> bool:
        """Had it ended before this poll asked anything? It hung up, maybe with a word, or has forgotten us."""
        heard, received = self._mark
        if self._api.heard != heard:
            return False
        if isinstance(error, exceptions.FatalError | _OutOfTurn):
            return True
        silent = self._transport.reader.received == received
        return silent and isinstance(error, exceptions.ConnectionClosed | ConnectionError)

    async def _call(self, command: str, **attributes: str) -> list[dict[str, str]]:
        self._transport.begin()
        # Commands are lazy generators: nothing is sent before the first row is asked for.
        return [row async for row in self._api(command, **attributes)]

    async def close(self, *, politely: bool) -> None:
        """Ends the session. After an error there is nothing to wait for: the connection is cut."""
        if not politely:
            self._writer.transport.abort()
            return
        self._writer.close()
        with contextlib.suppress(OSError, TimeoutError):
            async with asyncio.timeout(_CLOSE_S):
                await self._writer.wait_closed()
                return
        self._writer.transport.abort()


async def connect(address: str, port: int, tls: ssl.SSLContext | None) -> Router:
    """A connection, not logged in yet."""
    name = f"{address} port {port}"
    try:
        transport = await _open(address, port, tls)
    except ConnectionRefusedError:
        raise errors.DeviceUnreachable(
            f"{name} refused the connection", cause="the api service is off, or an access list is in the way"
        ) from None
    except EXPECTED as error:
        raise translate(error, name, "connecting") from None
    return Router(name, transport)


async def _open(address: str, port: int, tls: ssl.SSLContext | None) -> _Transport:
    """As `asyncio.open_connection`, with a reader that counts."""
    loop = asyncio.get_running_loop()
    reader = _Reader(loop=loop)
    protocol = asyncio.StreamReaderProtocol(reader, loop=loop)
    transport, _ = await loop.create_connection(lambda: protocol, address, port, ssl=tls)
    return _Transport(reader, asyncio.StreamWriter(transport, protocol, reader, loop))


def _response(challenge: str, password: str) -> str:
    """The proof of the password that RouterOS before 6.43 wants."""
    digest = hashlib.md5(b"\0" + password.encode() + bytes.fromhex(challenge), usedforsecurity=False)
    return "00" + digest.hexdigest()


__all__ = ["EXPECTED", "Router", "connect", "decode", "encode", "translate"]
