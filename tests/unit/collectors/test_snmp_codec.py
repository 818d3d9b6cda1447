"""The codec reads every type and known encoding faults; no octets make it fail otherwise."""

from __future__ import annotations

import contextlib
import struct
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.wire import codec, value_types
from poller.collectors.snmp.wire.codec import Malformed, Missing
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.snmp_agent import element, integer, octets, oid, response, sequence

SYS_NAME = "1.3.6.1.2.1.1.5.0"


def read(message: bytes) -> codec.Pdu:
    at = codec.open_message(message)[2]
    return codec.read_pdu(message, at, len(message))


def read_value(encoded: bytes) -> Any:
    ((_, value),) = read(response(b"public", b"\x01", [(oid(SYS_NAME), encoded)])).rows
    return value


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (integer(-5), -5),
        (integer(2**31 - 1), 2**31 - 1),
        (octets(b"box"), b"box"),
        (octets(b""), b""),
        (b"\x05\x00", None),
        (oid("1.3.6.1.4.1.8072.3.2.10"), value_types.Oid("1.3.6.1.4.1.8072.3.2.10")),
        (element(6, b"\x88\x37\x03"), value_types.Oid("2.999.3")),
        (element(0x40, bytes((192, 0, 2, 1))), value_types.IpAddress("192.0.2.1")),
        (integer(2**32 - 1, 0x41), value_types.Counter32(2**32 - 1)),
        (integer(7, 0x42), value_types.Gauge32(7)),
        (integer(4200, 0x43), value_types.TimeTicks(4200)),
        (element(0x44, b"\x04\x02hi"), value_types.Opaque(b"\x04\x02hi")),
        (element(0x44, b"\x9fx\x04" + struct.pack(">f", 1.5)), 1.5),
        (element(0x44, b"\x9fy\x08" + struct.pack(">d", 0.1)), 0.1),
        (integer(2**64 - 1, 0x46), value_types.Counter64(2**64 - 1)),
        (integer(9, 0x47), value_types.Gauge32(9)),
        (b"\x80\x00", Missing.OBJECT),
        (b"\x81\x00", Missing.INSTANCE),
        (b"\x82\x00", Missing.END_OF_VIEW),
    ],
)
def test_every_type_has_its_class(encoded: bytes, value: Any) -> None:
    found = read_value(encoded)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("encoded", "value"),
    [
        (
            element(0x41, b"\xff\xff\xff\xff"),
            2**32 - 1,
        ),  # the leading zero is missing
        (element(0x41, b""), 0),
        (element(0x02, b""), 0),
        (element(0x40, b""), ""),  # no address
        (element(0x46, b"\xff" * 8), 2**64 - 1),
    ],
)
def test_known_encoding_faults_are_tolerated(encoded: bytes, value: Any) -> None:
    assert read_value(encoded) == value


def test_a_counter_that_is_too_big_for_its_type_has_the_wider_one() -> None:
    """A counter of more than 32 bits does not wrap at 32 bits."""
    assert value_types.COUNTER_WIDTHS[type(read_value(integer(2**40, 0x41)))] == 64


@pytest.mark.parametrize(
    "encoded",
    [
        integer(2**80, 0x46),
        element(0x40, b"\x01\x02"),
        element(0x99, b"?"),
        element(0x06, b"\x2b\x86"),
        element(0x06, b"\x2b" + b"\xff" * 20 + b"\x01"),
        element(0x06, b""),
    ],
)
def test_invalid_values_are_malformed(encoded: bytes) -> None:
    with pytest.raises(Malformed):
        read_value(encoded)


@pytest.mark.parametrize(
    "row",
    [b"\x30\x00", b"\x30\x80", b"\x30\x9e" + oid("1.3.6"), sequence(oid("1.3.6")), b"\x05\x00"],
)
def test_a_row_that_is_no_pair_is_malformed(row: bytes) -> None:
    """Some of these rows make gufo panic."""
    body = (
        element(2, b"\x01")
        + integer(0)
        + integer(0)
        + sequence(sequence(oid("1.3.6"), integer(5)), row)
    )
    with pytest.raises(Malformed):
        read(sequence(element(2, b"\x01"), octets(b"public"), element(0xA2, body)))


def test_an_error_text_does_not_quote_the_datagram() -> None:
    """A datagram contains the community, which is a secret."""
    with pytest.raises(Malformed) as caught:
        read(response(b"s3cret", b"\x01", [(oid(SYS_NAME), b"\x99\x06s3cret")]))
    assert "s3cret" not in str(caught.value)


@pytest.mark.parametrize("kind", [codec.GET, codec.GET_NEXT, codec.GET_BULK])
def test_a_request_is_what_an_agent_reads(kind: int) -> None:
    made = codec.message(
        1, b"public", codec.request(kind, 2**31 - 1, 0, 40, (SYS_NAME, "1.3.6.1.4.1.8072"))
    )
    request = snmp_agent.parse(made)
    assert (request.kind, request.community, request.repetitions) == (kind, b"public", 40)
    assert int.from_bytes(request.request_id, "big") == 2**31 - 1
    assert request.oids == [SYS_NAME, "1.3.6.1.4.1.8072"]


def test_the_error_and_the_id_are_read() -> None:
    found = read(response(b"public", b"\x01\x02", [(oid(SYS_NAME), b"\x05\x00")], 5))
    assert (found.request_id, found.status) == (0x0102, 5)


@given(st.binary(max_size=200))
def test_random_octets_are_read_or_malformed(data: bytes) -> None:
    """No other exception leaves the codec."""
    with contextlib.suppress(Malformed):
        read(data)


@given(st.lists(st.tuples(st.integers(0, 400), st.integers(0, 255)), max_size=6))
def test_a_valid_message_with_changed_octets_is_read_or_malformed(
    changes: list[tuple[int, int]],
) -> None:
    rows = [
        (oid(f"1.3.6.1.2.1.2.2.1.{column}.{row}"), integer(row, 0x41))
        for column in range(5)
        for row in range(4)
    ]
    spoiled = bytearray(response(b"public", b"\x01", rows))
    for at, octet in changes:
        spoiled[at % len(spoiled)] = octet
    with contextlib.suppress(Malformed):
        read(bytes(spoiled))


@pytest.mark.parametrize(
    ("value", "name"),
    [
        (1, "Integer32"),
        (b"", "OctetString"),
        (None, "Null"),
        (1.5, "Float"),
        (value_types.Counter64(1), "Counter64"),
        (value_types.Oid("1.3"), "Oid"),
        (value_types.TimeTicks(1), "TimeTicks"),
    ],
)
def test_types_have_names(value: Any, name: str) -> None:
    assert value_types.type_name(value) == name


def test_only_counters_have_a_width() -> None:
    assert [
        value_types.COUNTER_WIDTHS.get(type(value), 0)
        for value in (value_types.Counter32(1), value_types.Counter64(1), value_types.Gauge32(1), 1)
    ] == [
        32,
        64,
        0,
        0,
    ]
