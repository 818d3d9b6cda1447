"""What we look at before the engine decodes a datagram."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp import datagram
from tests.unit.collectors.snmp_agent import element, integer, octets, oid, response, sequence

GOOD = response(b"public", b"\x01", [(oid("1.3.6.1.2.1.1.5.0"), octets(b"box")), (oid("1.3.6"), integer(5))])


def test_a_good_response_is_whole_and_sound() -> None:
    assert datagram.is_whole(GOOD, len(GOOD))
    assert datagram.is_sound(GOOD)
    assert datagram.error_status(GOOD) == 0


@pytest.mark.parametrize("status", [1, 2, 5, 16])
def test_the_error_status_is_found(status: int) -> None:
    assert datagram.error_status(response(b"public", b"\x01\x02\x03\x04", [], status)) == status


@pytest.mark.parametrize(
    "spoil", [lambda m: m[:-1], lambda m: m + b"\0", lambda m: b"\x31" + m[1:], lambda m: b"hello", lambda m: b""]
)
def test_what_is_not_one_whole_message_is_seen(spoil: Callable[[bytes], bytes]) -> None:
    bad = spoil(GOOD)
    assert not datagram.is_whole(bad, len(bad))


def test_long_lengths_are_understood() -> None:
    long = response(b"public", b"\x01", [(oid("1.3.6"), octets(b"x" * 3000))])
    assert datagram.is_whole(long[:256], len(long))
    assert datagram.is_sound(long)


def test_an_element_that_ends_outside_its_parent_is_unsound() -> None:
    assert not datagram.is_sound(sequence(b"\x02\x05\x01"))
    assert not datagram.is_sound(sequence(b"\x02"))


@pytest.mark.parametrize(
    "row", [b"\x30\x00", b"\x30\x80", b"\x30\x9e" + oid("1.3.6"), sequence(oid("1.3.6")), b"\x05\x00"]
)
def test_a_row_that_is_no_pair_is_unsound(row: bytes) -> None:
    """These make the engine panic, or would."""
    good = sequence(oid("1.3.6"), integer(5))
    body = element(2, b"\x01") + integer(0) + integer(0) + sequence(good, row)
    assert not datagram.is_sound(sequence(element(2, b"\x01"), octets(b"public"), element(0xA2, body)))


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(data: bytes) -> None:
    """Whatever arrives, the answer is yes or no."""
    assert datagram.is_sound(data) in (True, False)
    assert datagram.is_whole(data, len(data)) in (True, False)
    assert datagram.error_status(data) >= 0
