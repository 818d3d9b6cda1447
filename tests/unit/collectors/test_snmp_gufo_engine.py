"""Datagrams are checked before the library decodes them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.engines import gufo_engine
from tests.unit.collectors.snmp_agent import integer, octets, oid, response

GOOD = response(
    b"public", b"\x01", [(oid("1.3.6.1.2.1.1.5.0"), octets(b"box")), (oid("1.3.6"), integer(5))]
)


def test_a_good_response_is_whole() -> None:
    assert gufo_engine.is_whole(GOOD, len(GOOD))
    assert gufo_engine.error_status(GOOD, len(GOOD)) == 0


@pytest.mark.parametrize("status", [1, 2, 5, 16])
def test_the_error_status_is_read_from_the_head(status: int) -> None:
    """The head is enough, and octets of an earlier, longer datagram behind it do not count."""
    message = response(b"public", b"\x01\x02\x03\x04", [], status)
    assert gufo_engine.error_status(message, len(message)) == status
    assert gufo_engine.error_status(message + b"stale", len(message)) == status
    long = response(b"public", b"\x01", [(oid("1.3.6"), octets(b"x" * 3000))], status)
    assert gufo_engine.error_status(long[: gufo_engine.HEAD_BYTES], len(long)) == status


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
def test_an_incomplete_message_is_not_whole(spoil: Callable[[bytes], bytes]) -> None:
    bad = spoil(GOOD)
    assert not gufo_engine.is_whole(bad, len(bad))


def test_long_lengths_are_understood() -> None:
    long = response(b"public", b"\x01", [(oid("1.3.6"), octets(b"x" * 3000))])
    assert gufo_engine.is_whole(long[:256], len(long))


@given(st.binary(max_size=200))
def test_the_check_of_a_head_never_raises(data: bytes) -> None:
    assert gufo_engine.is_whole(data, len(data)) in (True, False)
    assert gufo_engine.error_status(data, len(data)) >= 0
