"""The BER encoding of SNMP: an encoder, and a strict decoder for requests.

The decoder raises `Malformed` for anything that is not well-formed.
"""

from __future__ import annotations

INTEGER = 0x02
OCTET_STRING = 0x04
NULL = 0x05
OBJECT_ID = 0x06
SEQUENCE = 0x30
COUNTER32 = 0x41
GAUGE32 = 0x42
TIME_TICKS = 0x43
COUNTER64 = 0x46
NO_SUCH_OBJECT = 0x80
NO_SUCH_INSTANCE = 0x81
END_OF_MIB_VIEW = 0x82

Oid = tuple[int, ...]

MAX_ARCS = 128
MAX_ARC = 0xFFFF_FFFF


class Malformed(ValueError):
    """The bytes are not BER, or not the BER that was expected here."""


def length(n: int) -> bytes:
    if n < 0x80:
        return bytes((n,))
    size = (n.bit_length() + 7) // 8
    return bytes((0x80 | size,)) + n.to_bytes(size, "big")


def tlv(tag: int, content: bytes) -> bytes:
    return bytes((tag,)) + length(len(content)) + content


def integer(value: int, tag: int = INTEGER) -> bytes:
    """Encode a number in two's complement, in the minimum number of octets."""
    size = (value if value >= 0 else ~value).bit_length() // 8 + 1
    return tlv(tag, value.to_bytes(size, "big", signed=True))


def octets(text: str | bytes) -> bytes:
    return tlv(OCTET_STRING, text.encode() if isinstance(text, str) else text)


def oid(arcs: Oid) -> bytes:
    return tlv(OBJECT_ID, b"".join(map(_arc, (arcs[0] * 40 + arcs[1], *arcs[2:]))))


def varbind(name: Oid, value: bytes) -> bytes:
    return tlv(SEQUENCE, oid(name) + value)


def exception(name: Oid, tag: int) -> bytes:
    """Encode a varbind whose value is noSuchObject, noSuchInstance or endOfMibView."""
    return varbind(name, bytes((tag, 0)))


def read_header(data: bytes, at: int, end: int) -> tuple[int, int, int]:
    """Return the tag of the element at `at`, and where its content starts and stops."""
    if at + 2 > end:
        raise Malformed("cut short")
    tag, size, start = data[at], data[at + 1], at + 2
    if size & 0x80:
        octet_count = size & 0x7F
        start += octet_count
        if not 1 <= octet_count <= 4 or start > end:
            raise Malformed("bad length")
        size = int.from_bytes(data[at + 2 : start], "big")
    if start + size > end:
        raise Malformed("longer than the message")
    return tag, start, start + size


def read(data: bytes, at: int, end: int, tag: int) -> tuple[int, int]:
    """Return the content offsets of an element. Raises Malformed if it has another tag."""
    actual, start, stop = read_header(data, at, end)
    if actual != tag:
        raise Malformed("unexpected tag")
    return start, stop


def read_integer(data: bytes, at: int, end: int) -> tuple[int, int]:
    """Return a 32-bit INTEGER and the offset after it."""
    start, stop = read(data, at, end, INTEGER)
    if not 1 <= stop - start <= 5:
        raise Malformed("not a 32-bit integer")
    return int.from_bytes(data[start:stop], "big", signed=True), stop


def read_oid(data: bytes, at: int, end: int) -> tuple[Oid, int]:
    """Return an OBJECT IDENTIFIER and the offset after it."""
    start, stop = read(data, at, end, OBJECT_ID)
    if start == stop or data[stop - 1] & 0x80:
        raise Malformed("empty or unfinished object identifier")
    arcs: list[int] = []
    arc = 0
    for octet in data[start:stop]:
        arc = arc << 7 | octet & 0x7F
        if not octet & 0x80:
            arcs.append(arc)
            arc = 0
        elif arc > MAX_ARC:
            raise Malformed("arc too large")
    if len(arcs) >= MAX_ARCS or max(arcs) > MAX_ARC:
        raise Malformed("too many arcs, or one too large")
    root = min(arcs[0] // 40, 2)
    return (root, arcs[0] - 40 * root, *arcs[1:]), stop


def _arc(arc: int) -> bytes:
    out = [arc & 0x7F]
    while arc := arc >> 7:
        out.append(arc & 0x7F | 0x80)
    return bytes(reversed(out))
