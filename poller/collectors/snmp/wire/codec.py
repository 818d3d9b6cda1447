"""BER codec for SNMP in plain Python: requests to octets, responses to rows with their exact types.

It covers what gufo lacks: types, error status, responses above 4 kB, odd encodings. It tolerates
known faults of devices; anything else raises `Malformed`.
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

INTEGER, OCTETS, NULL, OID, SEQUENCE = 0x02, 0x04, 0x05, 0x06, 0x30
GET, GET_NEXT, RESPONSE, GET_BULK, REPORT = 0xA0, 0xA1, 0xA2, 0xA5, 0xA8
_NULL_ELEMENT = b"\x05\x00"
_OPAQUE_FLOAT = b"\x9f\x78\x04"
_OPAQUE_DOUBLE = b"\x9f\x79\x08"
_MAX_NUMBER_OCTETS = 9  # 64 bits and a leading zero
_MAX_ARC_BITS = 40  # an arc has 32; the limit stops an arc without end
_MAX_OID_OCTETS = 640  # 128 arcs of 32 bits
#: A request id that takes four octets, as all with this bit do.
_FOUR_OCTETS = 1 << 30
#: Longer OIDs are decoded without the cache.
_CACHED_OID_OCTETS = 40


class Malformed(ValueError):
    """Not SNMP. The text never repeats the octets: they contain the community."""


class Missing(enum.Enum):
    """SNMP exceptions that an agent sends in place of a value."""

    OBJECT = 0x80
    INSTANCE = 0x81
    END_OF_VIEW = 0x82


VarBind = tuple[str, Value | Missing]


class Pdu(NamedTuple):
    """A decoded response. `status` is the agent's error status."""

    kind: int
    request_id: int
    status: int
    rows: list[VarBind]


def element(tag: int, body: bytes) -> bytes:
    """A tag, the length of the body in its shortest form, and the body."""
    size = len(body)
    if size < 0x80:
        return bytes((tag, size)) + body

    octets = size.to_bytes((size.bit_length() + 7) // 8, "big")
    return bytes((tag, 0x80 | len(octets))) + octets + body


def integer(value: int) -> bytes:
    """An INTEGER element."""
    magnitude = value if value >= 0 else ~value
    size = magnitude.bit_length() // 8 + 1
    return element(INTEGER, value.to_bytes(size, "big", signed=True))


def request(kind: int, request_id: int, first: int, second: int, oids: Sequence[str]) -> bytes:
    """A request PDU; `first`, `second`: non-repeaters and max-repetitions of a GETBULK, else 0."""
    rows = bytearray()
    for oid in oids:
        rows += element(SEQUENCE, oid_element(oid) + _NULL_ELEMENT)
    numbers = integer(request_id) + integer(first) + integer(second)
    body = numbers + element(SEQUENCE, bytes(rows))
    return element(kind, body)


def prepared(kind: int, max_repetitions: int, oids: Sequence[str]) -> tuple[bytes, bytes]:
    """A request PDU without its id: what comes before and after an id of four octets."""
    pdu = request(kind, _FOUR_OCTETS, 0, max_repetitions, oids)
    head, _, tail = pdu.partition(_FOUR_OCTETS.to_bytes(4, "big"))
    return head, tail


def message(version: int, community: bytes, pdu: bytes) -> bytes:
    """A message of SNMP v1 (`version` 0) or v2c (`version` 1) around a PDU."""
    head = integer(version) + element(OCTETS, community)
    return element(SEQUENCE, head + pdu)


def open_message(data: Octets) -> tuple[int, bytes, int]:
    """Version and community of a v1 or v2c message, and the offset of its PDU."""
    start, end = expect(data, 0, len(data), SEQUENCE)
    if end != len(data):
        raise Malformed("something follows the message")

    version, at = read_integer(data, start, end)
    community, at = read_octets(data, at, end)
    return version, community, at


def read_pdu(data: Octets, at: int, end: int) -> Pdu:
    """The response or report at `at`. Raises Malformed."""
    kind, start, end = header(data, at, end)
    if kind not in (RESPONSE, REPORT):
        raise Malformed("not an answer")

    request_id, at = read_integer(data, start, end)
    status, at = read_integer(data, at, end)
    _, at = read_integer(data, at, end)  # error index
    at, end = expect(data, at, end, SEQUENCE)

    rows: list[VarBind] = []
    while at < end:
        start, at = expect(data, at, end, SEQUENCE)
        rows.append(_row(data, start, at))
    return Pdu(kind, request_id, status, rows)


def _row(data: Octets, at: int, end: int) -> VarBind:
    """The name and value of one variable binding."""
    start, at = expect(data, at, end, OID)
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

    tag = data[at]
    size = data[at + 1]
    start = at + 2
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
    """Where the contents of an element with this tag begin and end. Raises Malformed."""
    actual, start, stop = header(data, at, end)
    if actual != tag:
        raise Malformed(f"0x{actual:02x} where 0x{tag:02x} belongs")
    return start, stop


def read_integer(data: Octets, at: int, end: int) -> tuple[int, int]:
    """The INTEGER at `at`, and the offset behind it. Raises Malformed."""
    start, stop = expect(data, at, end, INTEGER)
    body = bytes(data[start:stop])
    return _signed(body), stop


def read_octets(data: Octets, at: int, end: int) -> tuple[bytes, int]:
    """The OCTET STRING at `at`, and the offset behind it. Raises Malformed."""
    start, stop = expect(data, at, end, OCTETS)
    body = bytes(data[start:stop])
    return body, stop


@functools.lru_cache(4096)
def oid_element(text: str) -> bytes:
    """The OBJECT IDENTIFIER element of a dotted text."""
    parts = [int(part) for part in text.split(".")]
    if len(parts) == 1:
        parts.append(0)
    first, second, *rest = parts
    body = _arc(first * 40 + second)
    body += b"".join(map(_arc, rest))
    return element(OID, body)


def _arc(arc: int) -> bytes:
    """An arc in groups of seven bits, the last one without its high bit."""
    groups = [arc & 0x7F]
    while arc := arc >> 7:
        groups.append(arc & 0x7F | 0x80)
    return bytes(reversed(groups))


def oid_text(body: bytes) -> str:
    """Dotted text of an encoded OID. Short ones are cached: most devices share them."""
    if len(body) <= _CACHED_OID_OCTETS:
        return _cached_oid_text(body)
    return _oid_text(body)


def _oid_text(body: bytes) -> str:
    """Decode an OBJECT IDENTIFIER; arcs and length are limited."""
    arcs: list[int] = []
    arc = 0
    for octet in body[: _MAX_OID_OCTETS + 1]:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
        elif arc >> _MAX_ARC_BITS:
            raise Malformed("an object identifier with too large a part")

    if not arcs or body[-1] & 0x80 or len(body) > _MAX_OID_OCTETS:
        raise Malformed("an object identifier that is cut short")
    first, *rest = arcs
    root = min(first // 40, 2)  # the first arc holds two parts
    parts = (root, first - 40 * root, *rest)
    return ".".join(map(str, parts))


_cached_oid_text = functools.lru_cache(16_384)(_oid_text)


def _oid(body: bytes) -> Value:
    """An OBJECT IDENTIFIER value."""
    return value_types.Oid(oid_text(body))


def _signed(body: bytes) -> int:
    """An INTEGER value of up to 64 bits."""
    if len(body) > _MAX_NUMBER_OCTETS:
        raise Malformed("a number that is too long")
    return int.from_bytes(body, "big", signed=True)  # agents send 0 as no octets at all


def _unsigned(kind: type[int]) -> Callable[[bytes], int]:
    """A reader of unsigned numbers. Agents omit the leading zero that keeps them positive."""

    def read(body: bytes) -> int:
        if len(body) > _MAX_NUMBER_OCTETS:
            raise Malformed("a number that is too long")
        value = int.from_bytes(body, "big")
        fits = value < 2**32 or kind is value_types.Counter64
        return kind(value) if fits else value_types.Counter64(value)

    return read


def _octets(body: bytes) -> Value:
    return body


def _null(_: bytes) -> Value:
    return None


def _ip_address(body: bytes) -> Value:
    """An IpAddress value; some agents send no octets at all."""
    if len(body) not in (0, 4):
        raise Malformed("an address of neither four octets nor none")
    dotted = ".".join(map(str, body))
    return value_types.IpAddress(dotted)


def _opaque(body: bytes) -> Value:
    """The float or double inside an Opaque value; other contents stay octets."""
    if len(body) == 7 and body.startswith(_OPAQUE_FLOAT):
        (number,) = struct.unpack(">f", body[3:])
        return float(number)
    if len(body) == 11 and body.startswith(_OPAQUE_DOUBLE):
        (number,) = struct.unpack(">d", body[3:])
        return float(number)
    return value_types.Opaque(body)


def _missing(kind: Missing) -> Callable[[bytes], Missing]:
    """A reader that ignores its octets."""
    return lambda _: kind


_READERS: dict[int, Callable[[bytes], Value | Missing]] = {
    INTEGER: _signed,
    OCTETS: _octets,
    NULL: _null,
    OID: _oid,
    0x40: _ip_address,
    0x41: _unsigned(value_types.Counter32),
    0x42: _unsigned(value_types.Gauge32),
    0x43: _unsigned(value_types.TimeTicks),
    0x44: _opaque,
    0x45: _octets,  # NsapAddress, obsolete
    0x46: _unsigned(value_types.Counter64),
    0x47: _unsigned(value_types.Gauge32),  # UInteger32, obsolete
    **{kind.value: _missing(kind) for kind in Missing},
}
