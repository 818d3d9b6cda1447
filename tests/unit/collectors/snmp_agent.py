"""BER for test agents: valid and invalid responses to SNMP requests."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


def element(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    length = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(length))) + length + body


def integer(value: int, tag: int = 2) -> bytes:
    return element(tag, value.to_bytes(value.bit_length() // 8 + 1, "big", signed=True))


def octets(value: bytes) -> bytes:
    return element(4, value)


def oid(text: str) -> bytes:
    first, second, *rest = map(int, text.split("."))
    body = bytes((first * 40 + second,))
    for part in rest:
        groups = [part & 0x7F]
        while part := part >> 7:
            groups.append(part & 0x7F | 0x80)
        body += bytes(reversed(groups))
    return element(6, body)


def sequence(*items: bytes) -> bytes:
    return element(0x30, b"".join(items))


def response(
    community: bytes,
    request_id: bytes,
    rows: Sequence[tuple[bytes, bytes]],
    status: int = 0,
    version: bytes = b"\x01",
) -> bytes:
    return sequence(element(2, version), octets(community), _pdu(request_id, rows, status))


def response_pdu(request_id: bytes, rows: Sequence[tuple[str, bytes]], status: int = 0) -> bytes:
    return _pdu(request_id, [(oid(name), value) for name, value in rows], status)


def _pdu(request_id: bytes, rows: Sequence[tuple[bytes, bytes]], status: int) -> bytes:
    rows_body = sequence(*(sequence(name, value) for name, value in rows))
    return element(0xA2, element(2, request_id) + integer(status) + integer(0) + rows_body)


@dataclass(frozen=True)
class Request:
    version: bytes
    community: bytes
    kind: int
    request_id: bytes
    repetitions: int
    oids: list[str]

    def answer(self, rows: Sequence[tuple[str, bytes]], status: int = 0) -> bytes:
        named = [(oid(name), value) for name, value in rows]
        return response(self.community, self.request_id, named, status, self.version)


GET, GET_NEXT, GET_BULK = 0xA0, 0xA1, 0xA5


def parse(data: bytes) -> Request:
    _, message, _ = _read(data, 0)
    _, version, at = _read(message, 0)
    _, community, at = _read(message, at)
    return parse_pdu(message[at:], version, community)


def parse_pdu(data: bytes, version: bytes = b"\x03", community: bytes = b"") -> Request:
    kind, pdu, _ = _read(data, 0)
    _, request_id, at = _read(pdu, 0)
    _, _, at = _read(pdu, at)
    _, repetitions, at = _read(pdu, at)
    _, rows, _ = _read(pdu, at)
    names, at = [], 0
    while at < len(rows):
        _, row, at = _read(rows, at)
        names.append(_oid_text(_read(row, 0)[1]))
    return Request(version, community, kind, request_id, int.from_bytes(repetitions, "big"), names)


def _read(data: bytes, at: int) -> tuple[int, bytes, int]:
    tag, length, at = data[at], data[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, at = int.from_bytes(data[at : at + size], "big"), at + size
    return tag, data[at : at + length], at + length


def _oid_text(body: bytes) -> str:
    parts, value = [body[0] // 40, body[0] % 40], 0
    for octet in body[1:]:
        value = value << 7 | octet & 0x7F
        if not octet & 0x80:
            parts.append(value)
            value = 0
    return ".".join(map(str, parts))
