"""A look at an SNMP datagram before the engine decodes it: is it whole, is it sound, what is its error status?

The engine panics (and writes to stderr) on some malformed datagrams, and hides the error status.
"""

from __future__ import annotations

#: Enough for the header with a community of up to about 200 octets.
HEAD_BYTES = 256

_SEQUENCE, _INTEGER, _OCTETS, _RESPONSE = 0x30, 0x02, 0x04, 0xA2
_PDUS = range(0xA0, 0xA9)

Octets = bytes | bytearray
Element = tuple[int, int, int]  # tag, where the contents begin and end


def is_whole(head: Octets, length: int) -> bool:
    """Does it begin like an SNMP message, of exactly the datagram's length?"""
    if length < 4 or head[0] != _SEQUENCE:
        return False
    first = head[1]
    if first < 0x80:
        return first + 2 == length
    size = first & 0x7F
    return 0 < size <= 3 and int.from_bytes(head[2 : 2 + size], "big") + 2 + size == length


def is_sound(message: Octets) -> bool:
    """Is it complete, to the last row of values? Slow: for agents that sent something dangerous before."""
    top = _children(message, 0, len(message))
    if top is None or len(top) != 1 or top[0][0] != _SEQUENCE:
        return False
    parts = _children(message, *top[0][1:])
    if parts is None or len(parts) < 3:
        return False
    pdu = parts[2]
    if pdu[0] not in _PDUS:
        return True  # version 3: more cannot be seen from outside
    fields = _children(message, *pdu[1:])
    if fields is None or len(fields) != 4 or fields[3][0] != _SEQUENCE:
        return False
    rows = _children(message, *fields[3][1:])
    return rows is not None and all(tag == _SEQUENCE and _is_row(message, start, end) for tag, start, end in rows)


def _is_row(message: Octets, start: int, end: int) -> bool:
    pair = _children(message, start, end)
    return pair is not None and len(pair) == 2 and pair[0][1] < pair[0][2]


def _children(message: Octets, at: int, end: int) -> list[Element] | None:
    """The elements side by side in a stretch of bytes; None when they do not fill it exactly."""
    found = []
    while at < end:
        if end - at < 2 or message[at] & 0x1F == 0x1F or message[at + 1] == 0x80:  # SNMP has neither form
            return None
        _, start, stop = _bounds(message, at)
        if stop > end:
            return None
        found.append((message[at], start, stop))
        at = stop
    return found


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
