"""Values of a response whose OIDs are known before: the names are compared, never made into text.

Plain Python that Cython compiles with the types of `response_values.pxd` where the machine has a C
compiler. Compiled, it takes a fifteenth of the CPU of a library that makes a text of each OID;
as plain Python it is slower than the library, and `is_compiled` says so. Anything that is not as
expected gives None: the caller then asks in the usual way.
"""

from __future__ import annotations

from typing import Any


def is_compiled() -> bool:
    """Whether this module is compiled, and worth its use."""
    return not __file__.endswith(".py")


def request_id(data: bytearray, size: int, head: bytes) -> int:
    """The request id of the response in the first `size` octets of `data`, of four octets; else -1.

    `head` holds the version and the community as they are encoded.
    """
    octets = data
    at = _pdu_start(octets, size, head, len(head))
    if at < 0 or at + 6 > size or octets[at] != 0x02 or octets[at + 1] != 4:
        return -1
    return (
        octets[at + 2] << 24 | octets[at + 3] << 16 | octets[at + 4] << 8 | octets[at + 5]
    ) & 0x7FFFFFFF


def read_values(
    data: bytearray, size: int, head: bytes, names: bytes, count: int, root: bytes
) -> list[Any] | None:
    """The values of `count` rows with exactly these `names`, which are OID elements in a row.

    With a `root`, the contents of an OID, one more row must show that the subtree ends there;
    without it the response must end after the rows.
    """
    octets = data
    expected = names
    subtree = root
    at = _pdu_start(octets, size, head, len(head))
    if at < 0:
        return None
    at = _end(octets, at, size)  # request id
    if at < 0 or at + 3 > size or octets[at] != 2 or octets[at + 1] != 1 or octets[at + 2]:
        return None  # an error status
    at = _end(octets, at + 3, size)  # error index
    if at < 0 or at >= size or octets[at] != 0x30 or _end(octets, at, size) != size:
        return None
    at = _start(octets, at)

    values: list[Any] = []
    name_at = 0
    for _ in range(count):
        if at < 0 or at >= size or octets[at] != 0x30:
            return None
        row_end = _end(octets, at, size)
        if row_end < 0:
            return None
        at = _start(octets, at)
        name_size = expected[name_at + 1] + 2
        if at + name_size + 2 > row_end:
            return None
        for offset in range(name_size):
            if octets[at + offset] != expected[name_at + offset]:
                return None
        name_at += name_size
        at += name_size

        tag = octets[at]
        if _end(octets, at, row_end) != row_end:
            return None
        at = _start(octets, at)
        length = row_end - at
        if tag == 0x04:
            values.append(bytes(data[at:row_end]))
        elif length == 0 or length > 8:
            if tag != 0x46 or length != 9 or octets[at]:
                return None
            values.append(_number(octets, at + 1, row_end))
        elif tag == 0x02:
            values.append(_signed(octets, at, row_end))
        elif 0x41 <= tag <= 0x43 or tag == 0x46:
            if octets[at] & 0x80:
                return None  # a leading zero is missing
            values.append(_number(octets, at, row_end))
        else:
            return None
        at = row_end

    if not root:
        return values if at == size else None
    return values if _ends_subtree(octets, at, size, subtree, len(root)) else None


def _ends_subtree(octets: bytearray, at: int, size: int, subtree: bytes, subtree_size: int) -> bool:
    """Whether the row at `at` lies outside a subtree, or is the end of the agent's view."""
    if at >= size or octets[at] != 0x30:
        return False
    row_end = _end(octets, at, size)
    if row_end < 0:
        return False
    at = _start(octets, at)
    if at >= row_end or octets[at] != 0x06:
        return False
    name_end = _end(octets, at, row_end)
    if name_end < 0 or name_end >= row_end:
        return False
    at = _start(octets, at)
    if octets[name_end] == 0x82:
        return True
    if name_end - at < subtree_size:
        return True
    for offset in range(subtree_size):  # noqa: SIM110  a generator is no C loop
        if octets[at + offset] != subtree[offset]:
            return True
    return False


def _pdu_start(octets: bytearray, size: int, head: bytes, head_size: int) -> int:
    """Where the contents of a response with this head begin; -1 for any other datagram."""
    if size < 2 or octets[0] != 0x30 or _end(octets, 0, size) != size:
        return -1
    at = _start(octets, 0)
    if at + head_size + 2 > size:
        return -1
    for offset in range(head_size):
        if octets[at + offset] != head[offset]:
            return -1
    at += head_size
    if octets[at] != 0xA2 or _end(octets, at, size) != size:
        return -1
    return _start(octets, at)


def _start(octets: bytearray, at: int) -> int:
    """Where the contents of the element at `at` begin; only after `_end` has accepted it."""
    size = octets[at + 1]
    return at + 2 if size < 0x80 else at + 2 + (size & 0x7F)


def _end(octets: bytearray, at: int, end: int) -> int:
    """Where the element at `at` ends; -1 if that is not before `end`, or the length is odd."""
    if at + 2 > end:
        return -1
    size = octets[at + 1]
    start = at + 2
    if size >= 0x80:
        count = size & 0x7F
        if count == 0 or count > 3 or start + count > end:
            return -1
        size = 0
        for offset in range(count):
            size = size << 8 | octets[start + offset]
        start += count
    return start + size if start + size <= end else -1


def _number(octets: bytearray, at: int, end: int) -> int:
    """An unsigned number of up to eight octets."""
    number = 0
    while at < end:
        number = number << 8 | octets[at]
        at += 1
    return number


def _signed(octets: bytearray, at: int, end: int) -> int:
    """A number of one to eight octets in two's complement."""
    number = octets[at] - 0x100 if octets[at] & 0x80 else octets[at]
    at += 1
    while at < end:
        number = number * 0x100 + octets[at]
        at += 1
    return number
