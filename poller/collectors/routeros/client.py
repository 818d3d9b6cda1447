"""librouteros made safe: text stays text, nothing is logged, memory is bounded, every way out closes the socket.

`_TRANSLATION` is the only place that knows the library's exceptions. Deadlines are the caller's; after any
error the connection is useless (the library loses step with the router) and must be closed.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
import logging
import socket
import ssl
from collections.abc import Sequence

import librouteros.protocol
from librouteros import exceptions
from librouteros.api import AsyncApi
from librouteros.connections import AsyncSocketTransport
from librouteros.protocol import AsyncApiProtocol

from poller import errors
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


class _Transport(AsyncSocketTransport):  # type: ignore[misc]
    """Refuses to read more than any router says."""

    _left = MAX_BYTES

    async def read(self, length: int) -> bytes:
        self._left -= length
        if self._left < 0:
            raise exceptions.ProtocolError(f"the answer is longer than {MAX_BYTES} bytes")
        return bytes(await super().read(length))


class _Api(AsyncApi):  # type: ignore[misc]
    """Rows of text: the library's own would turn a name like `007` or `yes` into something else."""

    async def readSentence(self) -> tuple[str, dict[str, str]]:
        while True:
            try:
                reply, words = await self.protocol.readSentence()
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

    def __init__(self, name: str, writer: asyncio.StreamWriter, api: _Api) -> None:
        self._name = name
        self._writer = writer
        self._api = api

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
            raise translate(error, self._name, path) from None

    async def _call(self, command: str, **attributes: str) -> list[dict[str, str]]:
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
        reader, writer = await asyncio.open_connection(address, port, ssl=tls)
    except ConnectionRefusedError:
        raise errors.DeviceUnreachable(
            f"{name} refused the connection", cause="the api service is off, or an access list is in the way"
        ) from None
    except EXPECTED as error:
        raise translate(error, name, "connecting") from None
    protocol = AsyncApiProtocol(transport=_Transport(reader, writer), encoding=_WIRE, timeout=None)
    return Router(name, writer, _Api(protocol=protocol))


def _response(challenge: str, password: str) -> str:
    """The proof of the password that RouterOS before 6.43 wants."""
    digest = hashlib.md5(b"\0" + password.encode() + bytes.fromhex(challenge), usedforsecurity=False)
    return "00" + digest.hexdigest()


__all__ = ["EXPECTED", "Router", "connect", "decode", "encode", "translate"]
