"""Requests: split a datagram into request id and rest, and parse a rest that is not cached."""

from __future__ import annotations

from typing import NamedTuple

from poller.sim.snmp import ber
from poller.sim.snmp.ber import Malformed, Oid

V1, V2C = 0, 1
GET, GET_NEXT, RESPONSE, SET, GET_BULK = 0xA0, 0xA1, 0xA2, 0xA3, 0xA5


# Version, community, PDU tag, request id (encoded, for the reply), the rest of the message.
# A plain tuple, because one is made for every datagram.
Envelope = tuple[int, bytes, int, bytes, bytes]


class Request(NamedTuple):
    """The rest of a request, parsed.

    `first` and `second` are error-status and error-index, or non-repeaters and max-repetitions.
    """

    first: int
    second: int
    names: list[Oid]
    varbinds: bytes  # the encoded varbind list, for the reply of an error


def split(data: bytes) -> Envelope:
    """Split a message without checking the lengths that no caller needs. Raises Malformed."""
    try:
        at = _inside(data, 0)
        community = at + 5
        pdu = community + data[at + 4]
        request_id = _inside(data, pdu)
        rest = request_id + 2 + data[request_id + 1]
        well_formed = (
            data[0] == ber.SEQUENCE
            and data[at] == ber.INTEGER
            and data[at + 1] == 1
            and data[at + 3] == ber.OCTET_STRING
            and data[at + 4] < 0x80
            and data[request_id] == ber.INTEGER
            and 1 <= data[request_id + 1] <= 5
        )
    except IndexError:
        raise Malformed("cut short") from None
    if not well_formed:
        raise Malformed("not a community-based SNMP message")
    return data[at + 2], data[community:pdu], data[pdu], data[request_id:rest], data[rest:]


def split_pdu(data: bytes) -> tuple[int, bytes, bytes]:
    """Split a PDU into its tag, request id and the rest. Raises Malformed."""
    tag, start, end = ber.read_header(data, 0, len(data))
    _, at = ber.read_integer(data, start, end)
    return tag, data[start:at], data[at:end]


def parse(rest: bytes) -> Request:
    """Parse the rest after the request id, and check all of it. Raises Malformed."""
    end = len(rest)
    first, at = ber.read_integer(rest, 0, end)
    second, at = ber.read_integer(rest, at, end)
    start, stop = ber.read(rest, at, end, ber.SEQUENCE)
    if stop != end:
        raise Malformed("something follows the variables")
    names = []
    at = start
    while at < stop:
        inner, at = ber.read(rest, at, stop, ber.SEQUENCE)
        name, value = ber.read_oid(rest, inner, at)
        if ber.read_header(rest, value, at)[2] != at:
            raise Malformed("something follows a value")
        names.append(name)
    return Request(first, second, names, rest[start:stop])


def _inside(data: bytes, at: int) -> int:
    """Return the offset of the content of the element at `at`."""
    size = data[at + 1]
    return at + 2 if size < 0x80 else at + 2 + (size & 0x7F)
