"""A look at an SNMP datagram before the engine decodes it: is it whole, what is its error status?

It must cost next to nothing. (Who wants to know more reads it with `codec`.)
"""

from __future__ import annotations

#: Enough for the header with a community of up to about 200 octets.
HEAD_BYTES = 256

_SEQUENCE, _INTEGER, _OCTETS, _RESPONSE = 0x30, 0x02, 0x04, 0xA2

Octets = bytes | bytearray


def is_whole(head: Octets, length: int) -> bool:
    """Does it begin like an SNMP message, of exactly the datagram's length?"""
    if length < 4 or head[0] != _SEQUENCE:
        return False
    first = head[1]
    if first < 0x80:
        return first + 2 == length
    size = first & 0x7F
    return 0 < size <= 3 and int.from_bytes(head[2 : 2 + size], "big") + 2 + size == length


def error_status(head: Octets) -> int:
    """0 for no error, and for anything that is not the beginning of a response."""
    try:
        _, at, _ = _element(head, 0, _SEQUENCE)
        _, _, at = _element(head, at, _INTEGER)  # version
        _, _, at = _element(head, at, _OCTETS)  # community
        _, at, _ = _element(head, at, _RESPONSE)
        _, _, at = _element(head, at, _INTEGER)  # request id
        length, at, end = _element(head, at, _INTEGER)
    except (IndexError, ValueError):
        return 0
    return int.from_bytes(head[at:end], "big") if 0 < length <= 4 and end <= len(head) else 0


def _element(head: Octets, at: int, tag: int) -> tuple[int, int, int]:
    """Length of the contents, where they begin and where they end."""
    if head[at] != tag:
        raise ValueError
    return _bounds(head, at)


def _bounds(head: Octets, at: int) -> tuple[int, int, int]:
    length, start = head[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(head[start : start + size], "big"), start + size
    return length, start, start + length
