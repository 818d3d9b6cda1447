"""The error status of an SNMP v1/v2c response, read from the first bytes of its datagram."""

from __future__ import annotations

#: Enough for the header with a community of up to about 200 octets.
HEAD_BYTES = 256

_SEQUENCE, _INTEGER, _OCTETS, _RESPONSE = 0x30, 0x02, 0x04, 0xA2


def error_status(head: bytes | bytearray) -> int:
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


def _element(head: bytes | bytearray, at: int, tag: int) -> tuple[int, int, int]:
    """Length of the contents, where they begin and where they end."""
    if head[at] != tag:
        raise ValueError
    length, start = head[at + 1], at + 2
    if length & 0x80:
        size = length & 0x7F
        length, start = int.from_bytes(head[start : start + size], "big"), start + size
    return length, start, start + length
