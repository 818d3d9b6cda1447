"""ICMP echo on the wire, of both versions: what we send, and what of the received is an answer. Knows no sockets."""

from __future__ import annotations

import struct
from socket import AF_INET, AF_INET6
from typing import NamedTuple

_HEADER = struct.Struct("!BBHHH")
_REQUEST: dict[int, int] = {AF_INET: 8, AF_INET6: 128}
_REPLY: dict[int, int] = {AF_INET: 0, AF_INET6: 129}


class Echo(NamedTuple):
    """What tells one question from another: who asks, and its number there."""

    identifier: int
    sequence: int
    payload: bytes


def request(family: int, echo: Echo, *, summed: bool) -> bytes:
    """`summed`: with its checksum, which the kernel makes for all sockets but raw ones of IPv4."""
    kind, identifier, sequence, payload = _REQUEST[family], *echo
    plain = _HEADER.pack(kind, 0, 0, identifier, sequence) + payload
    if not summed:
        return plain
    return _HEADER.pack(kind, 0, checksum(plain), identifier, sequence) + payload


def checksum(data: bytes) -> int:
    """RFC 1071: the ones' complement of the ones' complement sum of all 16-bit words."""
    even = data if len(data) % 2 == 0 else data + b"\0"
    total: int = sum(struct.unpack(f"!{len(even) // 2}H", even))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def reply(family: int, data: bytes) -> Echo | None:
    """The answer in a datagram that begins with its ICMP header; None for anything else."""
    return _echo(data, _REPLY[family])


def asked(family: int, data: bytes) -> Echo | None:
    """Our own question, as a router quotes it when it says why it did not deliver it; mostly cut short."""
    return _echo(data, _REQUEST[family])


def _echo(data: bytes, wanted: int) -> Echo | None:
    if len(data) < _HEADER.size:
        return None
    kind, code, _, identifier, sequence = _HEADER.unpack_from(data)
    return (
        Echo(identifier, sequence, data[_HEADER.size :]) if kind == wanted and code == 0 else None
    )


def without_ip_header(data: bytes) -> bytes:
    """Raw sockets of IPv4 hand over the whole packet; empty if it is none."""
    return data[(data[0] & 0x0F) * 4 :] if data and data[0] >> 4 == 4 else b""
