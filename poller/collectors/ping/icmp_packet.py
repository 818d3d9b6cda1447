"""Encodes and decodes ICMP echo messages of IPv4 and IPv6. Opens no sockets."""

from __future__ import annotations

import struct
from socket import AF_INET, AF_INET6
from typing import NamedTuple

_HEADER = struct.Struct("!BBHHH")
_REQUEST: dict[int, int] = {AF_INET: 8, AF_INET6: 128}
_REPLY: dict[int, int] = {AF_INET: 0, AF_INET6: 129}


class Echo(NamedTuple):
    """The fields of an echo message: the sender's identifier, a number, and data."""

    identifier: int
    sequence: int
    payload: bytes


def encode_request(family: int, echo: Echo, *, with_checksum: bool) -> bytes:
    """Encode a request. Only raw IPv4 sockets need the checksum; the kernel makes all others."""
    identifier, sequence, payload = echo
    kind = _REQUEST[family]
    message = _HEADER.pack(kind, 0, 0, identifier, sequence) + payload
    if not with_checksum:
        return message
    return _HEADER.pack(kind, 0, checksum(message), identifier, sequence) + payload


def checksum(data: bytes) -> int:
    """RFC 1071: the ones' complement of the ones' complement sum of all 16-bit words."""
    even = data if len(data) % 2 == 0 else data + b"\0"
    total: int = sum(struct.unpack(f"!{len(even) // 2}H", even))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return ~total & 0xFFFF


def decode_reply(family: int, data: bytes) -> Echo | None:
    """Decode a datagram that begins with its ICMP header; None if it is no echo reply."""
    return _decode(data, _REPLY[family])


def decode_request(family: int, data: bytes) -> Echo | None:
    """Decode our own request as a router quotes it in an error, often cut short."""
    return _decode(data, _REQUEST[family])


def _decode(data: bytes, expected_kind: int) -> Echo | None:
    if len(data) < _HEADER.size:
        return None
    kind, code, _, identifier, sequence = _HEADER.unpack_from(data)
    if kind != expected_kind or code != 0:
        return None
    return Echo(identifier, sequence, data[_HEADER.size :])


def without_ip_header(data: bytes) -> bytes:
    """Strip the IP header, which raw IPv4 sockets deliver; b"" if the data is no IPv4 packet."""
    if not data or data[0] >> 4 != 4:
        return b""
    header_bytes = (data[0] & 0x0F) * 4
    return data[header_bytes:]
