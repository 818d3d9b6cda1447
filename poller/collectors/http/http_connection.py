"""Opens a connection to a web server: resolve, connect, TLS handshake, each step timed.

The caller sets the deadline.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from poller import errors
from poller.collectors import tls
from poller.collectors.http.exchange_record import Certificate, Exchange
from poller.collectors.http.urls import Url
from poller.collectors.tls import Trust

_Address = tuple[int, tuple[Any, ...]]  # family, and the argument of `connect`
Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
_BUFFER_BYTES = 64 * 1024
#: Time for each of several addresses before the next one is tried.
_CONNECT_S = 1.0


class Untrusted(errors.DeviceProtocolError):
    """The certificate is not one that the target trusts; no request was sent."""


async def open_streams(url: Url, name: str, trust: Trust, exchange: Exchange) -> Streams:
    """Connect; the certificate must be valid for `name`. The caller aborts the writer's transport.

    Raises Untrusted, OptionsUnusable and OSError.
    """
    context = trust.context() if url.scheme == "https" else None
    with exchange.phase("resolve", "resolving its name"):
        addresses = await _resolve(url)
    with exchange.phase("connect", "connecting"):
        connected = await _connect(addresses)
    try:
        if context is None:
            return await asyncio.open_connection(sock=connected, limit=_BUFFER_BYTES)
        with exchange.phase("tls", "the TLS handshake"):
            reader, writer = await _handshake(connected, name, context)
            _check_certificate(writer, trust, exchange)
            return reader, writer
    except BaseException:
        connected.close()
        raise


async def _resolve(url: Url) -> Sequence[_Address]:
    """Look the name up in every poll: the time of the lookup is a reading."""
    try:
        ipaddress.ip_address(url.host)
    except ValueError:
        loop = asyncio.get_running_loop()
        results = await loop.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM)
    else:
        flags = socket.AI_NUMERICHOST
        results = socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM, flags=flags)
    return [(family, address) for family, _, _, _, address in results]


async def _connect(addresses: Sequence[_Address]) -> socket.socket:
    """Connect to the first address that accepts. Raises the error of the last address."""
    failure = OSError("it has no address")
    for number, (family, address) in enumerate(addresses, 1):
        is_last = number == len(addresses)
        connecting = socket.socket(family, socket.SOCK_STREAM)
        try:
            connecting.setblocking(False)
            async with asyncio.timeout(None if is_last else _CONNECT_S):
                await asyncio.get_running_loop().sock_connect(connecting, address)
            return connecting
        except OSError as error:
            connecting.close()
            failure = error
        except BaseException:
            connecting.close()
            raise
    try:
        raise failure
    finally:
        del failure  # the error names this frame: together they would be a cycle


async def _handshake(connected: socket.socket, name: str, context: ssl.SSLContext) -> Streams:
    try:
        return await asyncio.open_connection(
            sock=connected, ssl=context, server_hostname=name, limit=_BUFFER_BYTES
        )
    except ssl.SSLCertVerificationError as error:
        raise _untrusted(error.verify_message) from None


def _check_certificate(writer: asyncio.StreamWriter, trust: Trust, exchange: Exchange) -> None:
    session = writer.get_extra_info("ssl_object")
    certificate = session.getpeercert(True)
    exchange.protocol = session.version() or ""
    exchange.certificate = Certificate.parse(certificate)
    if not trust.accepts(certificate):
        writer.transport.abort()
        fingerprint = tls.fingerprint_of(certificate)
        raise _untrusted(f"it is not the pinned one: its SHA-256 is {fingerprint}")
    exchange.trusted = not trust.insecure


def _untrusted(reason: str) -> Untrusted:
    hint = "set ca_file, fingerprint or insecure=true; where the address is not the name, set host"
    return Untrusted("its certificate cannot be trusted", cause=reason, hint=hint)


async def read_certificate(url: Url, name: str, exchange: Exchange) -> None:
    """Record the certificate of an untrusted server. Sends no request."""
    handshake = Exchange()
    _, writer = await open_streams(url, name, tls.ANY, handshake)
    writer.transport.abort()
    exchange.certificate = handshake.certificate
    exchange.protocol = handshake.protocol
