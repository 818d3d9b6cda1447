"""What we look at before the engine decodes a datagram."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.wire import datagram
from tests.unit.collectors.snmp_agent import integer, octets, oid, response

GOOD = response(
    b"public", b"\x01", [(oid("1.3.6.1.2.1.1.5.0"), octets(b"box")), (oid("1.3.6"), integer(5))]
)


def test_a_good_response_is_whole() -> None:
    assert datagram.is_whole(GOOD, len(GOOD))
    assert datagram.error_status(GOOD) == 0


@pytest.mark.parametrize("status", [1, 2, 5, 16])
def test_the_error_status_is_found(status: int) -> None:
    assert datagram.error_status(response(b"public", b"\x01\x02\x03\x04", [], status)) == status


@pytest.mark.parametrize(
    "spoil",
    [
        lambda m: m[:-1],
        lambda m: m + b"\0",
        lambda m: b"\x31" + m[1:],
        lambda m: b"hello",
        lambda m: b"",
    ],
)
def test_what_is_not_one_whole_message_is_seen(spoil: Callable[[bytes], bytes]) -> None:
    bad = spoil(GOOD)
    assert not datagram.is_whole(bad, len(bad))


def test_long_lengths_are_understood() -> None:
    long = response(b"public", b"\x01", [(oid("1.3.6"), octets(b"x" * 3000))])
    assert datagram.is_whole(long[:256], len(long))


@given(st.binary(max_size=200))
def test_no_bytes_make_it_stumble(data: bytes) -> None:
    """Whatever arrives, the answer is yes or no."""
    assert datagram.is_whole(data, len(data)) in (True, False)
    assert datagram.error_status(data) >= 0
