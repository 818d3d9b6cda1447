"""A connection to a web server: resolve, connect, TLS; each step timed. Deadlines are the caller's."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from poller import errors
from poller.collectors.http import http_tls
from poller.collectors.http.exchange_record import Seen
from poller.collectors.http.http_tls import Trust
from poller.collectors.http.urls import Url

_Address = tuple[int, tuple[Any, ...]]  # family, and what `connect` takes
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_BUFFER_BYTES = 64 * 1024
#: For an address of several, before the next is tried.
_PATIENCE_S = 1.0


class Untrusted(errors.DeviceProtocolError):
    """Its certificate is none that we may trust; nothing was asked."""


async def streams(url: Url, name: str, trust: Trust, seen: Seen) -> Streams:
    """Abort the writer's transport when done. `name` is what the certificate must be for.

    Raises Untrusted, OptionsUnusable, OSError, and whatever ends the caller's patience.
    """
    context = trust.context() if url.scheme == "https" else None
    with seen.phase("resolve", "resolving its name"):
        addresses = await _addresses(url)
    with seen.phase("connect", "connecting"):
        made = await _connect(addresses)
    try:
        if context is None:
            return await asyncio.open_connection(sock=made, limit=_BUFFER_BYTES)
        with seen.phase("tls", "the TLS handshake"):
            return await _secured(made, name, context, trust, seen)
    except BaseException:
        made.close()
        raise


async def _addresses(url: Url) -> Sequence[_Address]:
    """Looked up with every poll: how long that takes is a result, too."""
    try:
        ipaddress.ip_address(url.host)
    except ValueError:
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    else:
        flags = socket.AI_NUMERICHOST
        found = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, where) for family, _, _, _, where in found]


async def _connect(addresses: Sequence[_Address]) -> socket.socket:
    """To the first that lets us; the error of the last. One that is silent must not keep us from the next."""
    failed: OSError = OSError("it has no address")
    for number, (family, where) in enumerate(addresses, 1):
        made = socket.socket(family, socket.SOCK_STREAM)
        try:
            made.setblocking(False)
            async with asyncio.timeout(_PATIENCE_S if number < len(addresses) else None):
                await asyncio.get_running_loop().sock_connect(made, where)
            return made
        except OSError as error:
            made.close()
            failed = error
        except BaseException:
            made.close()
            raise
    raise failed


async def _secured(
    made: socket.socket, name: str, context: ssl.SSLContext, trust: Trust, seen: Seen
) -> Streams:
    try:
        reader, writer = await asyncio.open_connection(
            sock=made, ssl=context, server_hostname=name, limit=_BUFFER_BYTES
        )
    except ssl.SSLCertVerificationError as error:
        raise _untrusted(error.verify_message) from None
    session = writer.get_extra_info("ssl_object")
    certificate = session.getpeercert(True)
    seen.protocol = session.version() or ""
    seen.certificate = http_tls.read(certificate)
    if objection := trust.objection(certificate):
        writer.transport.abort()
        raise _untrusted(objection)
    seen.trusted = not trust.insecure
    return reader, writer


def _untrusted(why: str) -> Untrusted:
    hint = "set ca_file, fingerprint or insecure=true; where the address is not the name, set host"
    return Untrusted("its certificate cannot be trusted", cause=why, hint=hint)


async def look_at_certificate(url: Url, name: str, seen: Seen) -> None:
    """Of a server that we do not trust: when does its certificate expire? Nothing is asked of it."""
    glance = Seen()
    _, writer = await streams(url, name, http_tls.ANY, glance)
    writer.transport.abort()
    seen.certificate, seen.protocol = glance.certificate, glance.protocol
