"""Ping without a network: packets, replies, the pace of the probes, and their statistics."""

from __future__ import annotations

import math
import statistics
from socket import AF_INET, AF_INET6

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.collectors.ping import icmp_packet, round_trips
from poller.collectors.ping.icmp_packet import Echo
from poller.collectors.ping.options import PingOptions
from poller.collectors.registry import load

IDENTIFIERS = st.integers(0, 0xFFFF)


def test_a_request_as_the_book_has_it() -> None:
    """Checked by hand: the words 0800 1234 0001 6869 add up to 829e."""
    assert icmp_packet.encode_request(
        AF_INET, Echo(0x1234, 1, b"hi"), with_checksum=True
    ) == bytes.fromhex("08007d61123400016869")
    assert icmp_packet.encode_request(
        AF_INET6, Echo(0x1234, 1, b"hi"), with_checksum=False
    ) == bytes.fromhex("80000000123400016869")


@given(IDENTIFIERS, IDENTIFIERS, st.binary(max_size=70))
def test_a_receiver_finds_the_checksum_right(
    identifier: int, sequence: int, payload: bytes
) -> None:
    """The checksum over a whole message is 0."""
    assert (
        icmp_packet.checksum(
            icmp_packet.encode_request(
                AF_INET, Echo(identifier, sequence, payload), with_checksum=True
            )
        )
        == 0
    )


@given(st.sampled_from([AF_INET, AF_INET6]), IDENTIFIERS, IDENTIFIERS, st.binary(max_size=70))
def test_a_quoted_request_is_recognized(
    family: int, identifier: int, sequence: int, payload: bytes
) -> None:
    """A reply and an error quote the request; a request is no reply."""
    echo = Echo(identifier, sequence, payload)
    sent = icmp_packet.encode_request(family, echo, with_checksum=False)
    kind = bytes([0 if family == AF_INET else 129])
    assert icmp_packet.decode_request(family, sent) == echo
    assert icmp_packet.decode_reply(family, kind + sent[1:]) == echo
    assert icmp_packet.decode_reply(family, sent) is None


@given(st.sampled_from([AF_INET, AF_INET6]), st.binary(max_size=40))
def test_any_bytes_are_an_answer_or_none(family: int, data: bytes) -> None:
    found = icmp_packet.decode_reply(family, data)
    assert found is None or len(found.payload) == len(data) - 8
    assert len(icmp_packet.without_ip_header(data)) <= len(data)


@given(
    st.integers(1, 100),
    st.floats(0, 60, allow_nan=False),
    st.floats(0.001, 60, allow_nan=False),
    st.floats(-1, 120, allow_nan=False),
)
def test_all_probes_fit_and_have_the_same_timeout(
    count: int, interval_s: float, timeout_s: float, left_s: float
) -> None:
    """Interval and timeout shrink only if the time is too short."""
    found = round_trips.plan(count, interval_s, timeout_s, left_s)
    assert found.count == count
    assert 0 <= found.timeout_s <= timeout_s
    assert 0 <= found.interval_s <= interval_s
    assert (count - 1) * found.interval_s + found.timeout_s <= max(0.0, left_s) + 1e-6
    if (count - 1) * interval_s + timeout_s <= left_s - 1e-6 and count > 1:
        assert math.isclose(found.interval_s, interval_s)
        assert found.timeout_s == timeout_s


@given(st.lists(st.floats(1e-6, 10), min_size=1, max_size=20))
def test_the_spread_of_round_trips(seconds: list[float]) -> None:
    low, mean, high, deviation = round_trips.summarize(seconds)
    assert (low, high) == (min(seconds), max(seconds))
    assert math.isclose(mean, statistics.fmean(seconds))
    assert math.isclose(deviation, statistics.pstdev(seconds), rel_tol=1e-6, abs_tol=1e-9)


@pytest.mark.parametrize(("answered", "loss"), [(0, 1.0), (1, 0.75), (4, 0.0)])
def test_loss(answered: int, loss: float) -> None:
    assert round_trips.RoundTrips(4, [0.1] * answered).loss == loss


def test_durations_are_written_as_everywhere() -> None:
    options = PingOptions(interval="50ms", timeout="1m")  # type: ignore[arg-type]
    assert (options.interval, options.timeout) == (0.05, 60)


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"count": 0}, 'option "count"'),
        ({"timeout": "soon"}, 'option "timeout": "soon" is not a duration'),
        ({"size": 4}, 'option "size"'),
        ({"method": "udp"}, 'option "method"'),
        ({"pot": 80}, 'unknown option "pot"; did you mean port?'),
    ],
)
def test_wrong_options_are_named(raw: dict[str, object], complaint: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        load().options("ping", raw)
    assert complaint in str(caught.value)
