"""Addresses with and without a port: valid forms and messages for the others."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.domain.inventory import host_port
from poller.domain.inventory.host_port import HostPort


@pytest.mark.parametrize(
    "text", ["192.0.2.1", "2001:db8::1", "fe80::1%eth0", "sw1", "sw-1.example.net", "a_b.example"]
)
def test_an_address_without_a_port_stays_as_it_is(text: str) -> None:
    """IP literals and host names have no port unless one is given."""
    assert host_port.parse(text) == HostPort(text)


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("192.0.2.1:1161", "192.0.2.1", 1161),
        ("sw1:1", "sw1", 1),
        ("sw1.example.net.:65535", "sw1.example.net", 65535),
        ("sw1.", "sw1", None),
        ("[2001:db8::1]:161", "2001:db8::1", 161),
        ("[2001:db8::1]", "2001:db8::1", None),
        ("[fe80::1%eth0]:161", "fe80::1%eth0", 161),
        ("[::ffff:192.0.2.1]:161", "::ffff:192.0.2.1", 161),
        ("2001:db8::1:161", "2001:db8::1:161", None),
    ],
)
def test_a_port_follows_the_last_colon_or_the_brackets(
    text: str, host: str, port: int | None
) -> None:
    """A bare IPv6 address never has a port."""
    assert host_port.parse(text) == HostPort(host, port)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("10.0.0.300", "looks like an IPv4"),
        ("10.0.0.300:161", "looks like an IPv4"),
        ("http://sw1", "scheme"),
        ("udp://sw1:161", "scheme"),
        ("a b", "letters"),
        ("-a.example", "letters"),
        ("a..b", "letters"),
        ("1.2.3", "looks like an IPv4"),
        ("", "empty"),
        (5, "empty"),
        ("x" * 64 + ".example", "letters"),
        ("x." * 200 + "example", "letters"),
        ("10.0.0.0/24", "letters"),
        (":161", "letters"),
        ("sw1:", "port after the colon is missing"),
        ("sw1:0", "from 1 to 65535"),
        ("sw1:65536", "from 1 to 65535"),
        ("sw1:+161", "from 1 to 65535"),
        ("sw1:１６１", "from 1 to 65535"),
        ("sw1:snmp", "from 1 to 65535"),
        ("sw1:161:162", "[2001:db8::1]:161"),
        ("1:2:3:4:5:6:7:8:161", "[2001:db8::1]:161"),
        ("[::1", "closing bracket"),
        ("[192.0.2.1]:161", "brackets enclose an IPv6"),
        ("[sw1]:161", "brackets enclose an IPv6"),
        ("[::1]161", "only :PORT"),
        ("[::1]:", "port after the colon is missing"),
        ("[::1]:70000", "from 1 to 65535"),
        ("fe80::1%a b", "[2001:db8::1]:161"),
        ("192.0.2.1%eth0", "letters"),
        ("sw1\x1b[2J", "letters"),
    ],
)
def test_an_address_that_is_none_is_refused(text: object, reason: str) -> None:
    """The message names the field and the fault in one printable line, with examples."""
    with pytest.raises(errors.InvalidInput) as caught:
        host_port.parse(text, "peer")
    assert reason in str(caught.value)
    assert caught.value.message.startswith("the peer ")
    assert caught.value.message.isprintable()
    assert "for example 192.0.2.1" in caught.value.hint


@pytest.mark.parametrize("text", ["udp://sw1:1161", "UDP://sw1:1161", "sw1:1161"])
def test_the_target_of_a_scrape_may_name_its_transport(text: str) -> None:
    """Every SNMP target of Prometheus is polled over UDP."""
    assert host_port.parse_snmp_target(text) == HostPort("sw1", 1161)


@pytest.mark.parametrize(
    ("text", "reason"),
    [("tcp://sw1:161", "transport tcp"), ("udp://", "empty"), ("udp://a b", "letters")],
)
def test_a_scrape_over_another_transport_is_refused(text: str, reason: str) -> None:
    """The message names the target and the transport."""
    with pytest.raises(errors.InvalidInput, match="the target ") as caught:
        host_port.parse_snmp_target(text)
    assert reason in str(caught.value)


@given(
    st.sampled_from(["192.0.2.1", "2001:db8::1", "fe80::1%eth0", "sw1.example.net"]),
    st.none() | st.integers(1, 65535),
)
def test_a_printed_address_is_read_back(host: str, port: int | None) -> None:
    """The text of host and port is the form that people write."""
    pair = HostPort(host, port)
    assert host_port.parse(str(pair)) == pair


@given(st.text(max_size=40))
def test_any_text_is_parsed_or_refused(text: str) -> None:
    """No text raises another exception, and a host is never empty."""
    try:
        found = host_port.parse(text)
    except errors.InvalidInput:
        return
    assert found.host
    assert found.host.isprintable()
