"""The BER of the simulator against pyasn1, and against random bytes."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pyasn1.codec.ber import decoder, encoder
from pyasn1.type import univ

from poller.sim.snmp import ber, snmp_request

arcs = st.integers(0, 2**32 - 1)
oids = st.tuples(st.sampled_from([(1, 3), (0, 0), (2, 16)]), st.lists(arcs, max_size=30)).map(
    lambda parts: (*parts[0], *parts[1])
)


@given(st.integers(0, 2**64 - 1))
def test_numbers_are_encoded_as_by_pyasn1(value: int) -> None:
    """A number is encoded to the same octets as by pyasn1."""
    assert ber.integer(value) == encoder.encode(univ.Integer(value))


@given(st.integers(-(2**31), 2**31 - 1))
def test_integers_are_read_back(value: int) -> None:
    """Any 32-bit integer is read back, by our decoder and by pyasn1."""
    encoded = ber.integer(value)
    assert ber.read_integer(encoded, 0, len(encoded)) == (value, len(encoded))
    assert int(decoder.decode(encoded)[0]) == value


@given(oids)
def test_object_ids_are_encoded_as_by_pyasn1(arcs: ber.Oid) -> None:
    """An object identifier is encoded to the same octets as by pyasn1, and is read back."""
    encoded = ber.oid(arcs)
    assert encoded == encoder.encode(univ.ObjectIdentifier(arcs))
    assert ber.read_oid(encoded, 0, len(encoded)) == (arcs, len(encoded))


@pytest.mark.parametrize("size", [0, 1, 127, 128, 255, 256, 65535, 70000])
def test_lengths_of_all_forms(size: int) -> None:
    """Short and long lengths are read by pyasn1 and by our decoder."""
    encoded = ber.tlv(ber.OCTET_STRING, bytes(size))
    assert decoder.decode(encoded)[0] == univ.OctetString(bytes(size))
    assert ber.read_header(encoded, 0, len(encoded))[0] == ber.OCTET_STRING


@given(st.binary(max_size=80))
def test_random_bytes_raise_only_malformed(data: bytes) -> None:
    """For any bytes the decoder raises only Malformed."""
    for read in (snmp_request.split, snmp_request.parse, lambda d: ber.read_oid(d, 0, len(d))):
        with contextlib.suppress(ber.Malformed):
            read(data)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"\x06",
        b"\x06\x00",  # empty
        b"\x06\x02\x2b\x86",  # unfinished arc
        b"\x06\x07\x2b\xff\xff\xff\xff\xff\x7f",  # arc beyond 32 bits
        b"\x06\x84\xff\xff\xff\xff",  # four gigabytes
        b"\x06\x80\x2b\x00",  # indefinite length
        b"\x06\x81\x81" + b"\x01" * 0x81,  # too many arcs
        b"\x02\x01\x05",  # not an object identifier
    ],
)
def test_bad_object_ids_are_refused(data: bytes) -> None:
    """Object identifiers that are cut short or out of bounds are refused."""
    with pytest.raises(ber.Malformed):
        ber.read_oid(data, 0, len(data))
