"""Address ranges on the command line."""

from __future__ import annotations

import pytest

from poller import errors
from poller.cli.arguments import address_range


@pytest.mark.parametrize(
    ("text", "first", "last", "count"),
    [
        ("192.0.2.0/24", "192.0.2.1", "192.0.2.254", 254),
        ("192.0.2.4/31", "192.0.2.4", "192.0.2.5", 2),
        ("192.0.2.4/32", "192.0.2.4", "192.0.2.4", 1),
        ("10.0.0.0/20", "10.0.0.1", "10.0.15.254", 4094),
        ("2001:db8::/120", "2001:db8::1", "2001:db8::ff", 255),
        ("::1/128", "::1", "::1", 1),
        ("sw1.example.net", "sw1.example.net", "sw1.example.net", 1),
        ("2001:db8::7", "2001:db8::7", "2001:db8::7", 1),
    ],
)
def test_a_prefix_stands_for_its_hosts(text: str, first: str, last: str, count: int) -> None:
    found = address_range.expand(text).hosts
    assert (found[0], found[-1], len(found)) == (first, last, count)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("10.0.0.0/19", "has 8,192 addresses, and at most 4,096", "such as 10.0.0.0/20"),
        ("2001:db8::/64", "at most 4,096 are scanned", "such as 2001:db8::/116"),
        ("192.0.2.7/24", "is an address within a range", "192.0.2.0/24"),
        ("192.0.2.0/33", "is not an address range", "for example 192.0.2.0/24"),
        ("http://sw1/", "is not an address range", "for example"),
        ("a b", "is not an IP address or host name", "for example"),
    ],
)
def test_a_range_that_cannot_be_scanned_is_refused(text: str, message: str, hint: str) -> None:
    with pytest.raises(errors.InvalidInput) as raised:
        address_range.expand(text)
    assert message in str(raised.value)
    assert hint in raised.value.hint
