"""SNMP messages in plain Python: requests to octets, answers to rows with their exact types.

For what the fast engine cannot tell (types, an error status) or cannot take (long answers, odd encodings).
Lenient where devices are known to be sloppy; anything else raises `Malformed`.
"""

from __future__ import annotations

import enum
import functools
import struct
from collections.abc import Callable, Sequence
from typing import NamedTuple

from poller.collectors.snmp.wire import value_types
from poller.collectors.snmp.wire.value_types import Value

Octets = bytes | bytearray

INTEGER, OCTETS, SEQUENCE = 0x02, 0x04, 0x30
GET, GET_NEXT, RESPONSE, GET_BULK, REPORT = 0xA0, 0xA1, 0xA2, 0xA5, 0xA8
_OPAQUE_FLOAT, _OPAQUE_DOUBLE = b"\x9f\x78\x04", b"\x9f\x79\x08"
_NUMBER_OCTETS = 9  # 64 bits, and a leading zero
_USUAL_OID = 40  # octets
_ARC_BITS = 40  # an arc has 32; this stops one that never ends
_OID_OCTETS = 640  # 128 arcs of 32 bits


class Malformed(ValueError):
    """Not SNMP. The text never repeats the octets: they contain the community."""


class Missing(enum.Enum):
    """What an agent says instead of a value."""

    OBJECT = 0x80
    INSTANCE = 0x81
    END_OF_VIEW = 0x82


Found = tuple[str, Value | Missing]


class Pdu(NamedTuple):
    """An answer, taken apart. `status` is the agent's error."""

    kind: int
    request_id: int
    status: int
    rows: list[Found]


def element(tag: int, body: bytes) -> bytes:
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body
    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + body


def integer(value: int) -> bytes:
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return element(INTEGER, value.to_bytes(size, "big", signed=True))


def request(kind: int, request_id: int, first: int, second: int, oids: Sequence[str]) -> bytes:
    """A PDU; the two numbers are zero, or non-repeaters and max-repetitions of a GETBULK."""
    rows = b"".join(element(SEQUENCE, _oid_element(oid) + b"\x05\x00") for oid in oids)
    return element(
        kind, integer(request_id) + integer(first) + integer(second) + element(SEQUENCE, rows)
    )


def message(version: int, community: bytes, pdu: bytes) -> bytes:
    """Around a PDU, for versions 1 (0) and 2c (1)."""
    return element(SEQUENCE, integer(version) + element(OCTETS, community) + pdu)


def open_message(data: Octets) -> tuple[int, bytes, int]:
    """Version and community of a message of version 1 or 2c, and where its PDU begins."""
    start, end = expect(data, 0, len(data), SEQUENCE)
    if end != len(data):
        raise Malformed("something follows the message")
    version, at = read_integer(data, start, end)
    start, at = expect(data, at, end, OCTETS)
    return version, bytes(data[start:at]), at


def read_pdu(data: Octets, at: int, end: int) -> Pdu:
    kind, start, end = header(data, at, end)
    if kind not in (RESPONSE, REPORT):
        raise Malformed("not an answer")
    request_id, at = read_integer(data, start, end)
    status, at = read_integer(data, at, end)
    _, at = read_integer(data, at, end)
    at, end = expect(data, at, end, SEQUENCE)
    rows: list[Found] = []
    while at < end:
        start, at = expect(data, at, end, SEQUENCE)
        rows.append(_row(data, start, at))
    return Pdu(kind, request_id, status, rows)


def _row(data: Octets, at: int, end: int) -> Found:
    start, at = expect(data, at, end, 0x06)
    name = oid_text(bytes(data[start:at]))
    tag, start, stop = header(data, at, end)
    reader = _READERS.get(tag)
    if reader is None:
        raise Malformed(f"a value of the unknown type 0x{tag:02x}")
    return name, reader(bytes(data[start:stop]))


def header(data: Octets, at: int, end: int) -> tuple[int, int, int]:
    """Tag of the element at `at`, and where its contents begin and end."""
    if at + 2 > end:
        raise Malformed("cut short")
    tag, size, start = data[at], data[at + 1], at + 2
    if size & 0x80:
        count = size & 0x7F
        start += count
        if not 1 <= count <= 4 or start > end:
            raise Malformed("a bad length")
        size = int.from_bytes(data[at + 2 : start], "big")
    if start + size > end:
        raise Malformed("a length that goes beyond its message")
    return tag, start, start + size


def expect(data: Octets, at: int, end: int, tag: int) -> tuple[int, int]:
    found, start, stop = header(data, at, end)
    if found != tag:
        raise Malformed(f"0x{found:02x} where 0x{tag:02x} belongs")
    return start, stop


def read_integer(data: Octets, at: int, end: int) -> tuple[int, int]:
    start, stop = expect(data, at, end, INTEGER)
    return _signed(bytes(data[start:stop])), stop


def read_octets(data: Octets, at: int, end: int) -> tuple[bytes, int]:
    start, stop = expect(data, at, end, OCTETS)
    return bytes(data[start:stop]), stop


@functools.lru_cache(4096)
def _oid_element(text: str) -> bytes:
    parts = [int(part) for part in text.split(".")]
    first, second, *rest = parts if len(parts) > 1 else [*parts, 0]
    return element(0x06, b"".join(map(_arc, (first * 40 + second, *rest))))


def _arc(arc: int) -> bytes:
    groups = [arc & 0x7F]
    while arc := arc >> 7:
        groups.append(arc & 0x7F | 0x80)
    return bytes(reversed(groups))


def oid_text(body: bytes) -> str:
    """Most are those of other devices, too; unusually long ones are not remembered."""
    return _known_oid(body) if len(body) <= _USUAL_OID else _oid_text(body)


def _oid_text(body: bytes) -> str:
    arcs: list[int] = []
    arc = 0
    for octet in body[: _OID_OCTETS + 1]:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
        elif arc >> _ARC_BITS:
            raise Malformed("an object identifier with too large a part")
    if not arcs or body[-1] & 0x80 or len(body) > _OID_OCTETS:
        raise Malformed("an object identifier that is cut short")
    root = min(arcs[0] // 40, 2)
    return ".".join(map(str, (root, arcs[0] - 40 * root, *arcs[1:])))


_known_oid = functools.lru_cache(16_384)(_oid_text)


def _signed(body: bytes) -> int:
    if len(body) > _NUMBER_OCTETS:
        raise Malformed("a number that is too long")
    return int.from_bytes(body, "big", signed=True)  # no octets at all: 0, as agents mean it


def _unsigned(kind: type[int]) -> Callable[[bytes], int]:
    """Agents forget the leading zero that keeps a large number from being negative."""

    def read(body: bytes) -> int:
        if len(body) > _NUMBER_OCTETS:
            raise Malformed("a number that is too long")
        value = int.from_bytes(body, "big")
        return (
            kind(value)
            if value < 2**32 or kind is value_types.Counter64
            else value_types.Counter64(value)
        )

    return read


def _ip_address(body: bytes) -> Value:
    if len(body) not in (0, 4):
        raise Malformed("an address of neither four octets nor none")
    return value_types.IpAddress(".".join(map(str, body)))


def opaque(body: bytes) -> Value:
    """Floats travel in it; what else it holds stays as it is."""
    if len(body) == 7 and body.startswith(_OPAQUE_FLOAT):
        return float(struct.unpack(">f", body[3:])[0])
    if len(body) == 11 and body.startswith(_OPAQUE_DOUBLE):
        return float(struct.unpack(">d", body[3:])[0])
    return value_types.Opaque(body)


_READERS: dict[int, Callable[[bytes], Value | Missing]] = {
    INTEGER: _signed,
    OCTETS: lambda body: body,
    0x05: lambda body: None,
    0x06: lambda body: value_types.Oid(oid_text(body)),
    0x40: _ip_address,
    0x41: _unsigned(value_types.Counter32),
    0x42: _unsigned(value_types.Gauge32),
    0x43: _unsigned(value_types.TimeTicks),
    0x44: opaque,
    0x45: lambda body: body,  # NsapAddress, of long ago
    0x46: _unsigned(value_types.Counter64),
    0x47: _unsigned(value_types.Gauge32),  # UInteger32, likewise
    0x80: lambda body: Missing.OBJECT,
    0x81: lambda body: Missing.INSTANCE,
    0x82: lambda body: Missing.END_OF_VIEW,
}
