"""The filter language: what it selects, and how it refuses."""

from __future__ import annotations

import re

import pytest

from poller import errors
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import AddressMatch, TargetFilter, TargetState


def test_every_key_of_the_language() -> None:
    """Commas and repetition give several values; quotes protect wildcards from a shell."""
    parsed = target_filter.parse(
        'site:fra,"ber" tag:core tag:lab collector:snmp state:failing,open code:timeout'
        " name:sw-* name:r? address:10.1.0.0/16 address:2001:db8::/32"
    )
    assert parsed == TargetFilter(
        sites=("fra", "ber"),
        tags=("core", "lab"),
        collectors=("snmp",),
        states=(TargetState.FAILING, TargetState.OPEN),
        codes=("timeout",),
        names=("sw-*", "r?"),
        addresses=("10.1.0.0/16", "2001:db8::/32"),
    )
    assert parsed.selects_targets
    assert parsed.needs_status


@pytest.mark.parametrize(
    "text", ["site:fra,ber state:failing,open name:'sw-* x'", "site:''", "tag:a,b code:timeout", ""]
)
def test_a_filter_can_be_written_down(text: str) -> None:
    """The text of a filter is the filter again; the audit log has it."""
    parsed = target_filter.parse(text)
    assert target_filter.text(parsed) == text
    assert target_filter.parse(target_filter.text(parsed)) == parsed


def test_an_empty_filter_changes_nothing() -> None:
    """A script with empty variables is refused; the message names the field."""
    with pytest.raises(errors.InvalidInput, match="where: the filter is empty"):
        target_filter.parse_nonempty(" ", "where")


def test_an_empty_filter_selects_everything() -> None:
    """A text of blanks is an empty filter; the empty site is not: it is a device without a site."""
    assert target_filter.parse("  ").is_empty
    assert target_filter.parse("site:").sites == ("",)


@pytest.mark.parametrize(
    ("text", "message", "hint"),
    [
        ("sw-fra", 'the filter "sw-fra" has no key', "write name:sw-fra"),
        ("sit:fra", 'a filter has no key "sit"', "did you mean site?"),
        ("state:broken", 'there is no state "broken"', "ok, degraded, failing"),
        ("code:timeot", 'there is no error code "timeot"', "did you mean timeout?"),
        ("code:open_too_long", "no error code", "it is the reason of a dead letter"),
        ("address:192.0.2.1:161", 'address: "192.0.2.1:161" has a port', "address:192.0.2.1"),
        ("address:[::1]:161", 'address: "[::1]:161" has a port', "address:::1"),
        ("address:10.1/99", 'address: "10.1/99" is not a network', "10.1.0.0/16"),
        ("name:", "name: the value is empty", "for example"),
        ("site:fra,", "site: a value beside a comma is empty", "site:A,B"),
        ('site:"fra', "cannot be read: no closing quotation", "for example"),
    ],
)
def test_a_bad_filter_says_which_key_and_what_to_write(text: str, message: str, hint: str) -> None:
    """The error names the key, and its hint what to write instead."""
    with pytest.raises(errors.InvalidInput) as refused:
        target_filter.parse(text)
    assert message in refused.value.message
    assert hint in refused.value.hint


def test_both_forms_of_a_filter_add_up_but_do_not_contradict() -> None:
    """Options and --where can be used together, each for other keys."""
    site, tag = TargetFilter(sites=("fra",)), TargetFilter(tags=("core",))
    assert target_filter.merge(site, tag) == TargetFilter(sites=("fra",), tags=("core",))
    with pytest.raises(errors.InvalidInput, match="site is selected twice"):
        target_filter.merge(site, TargetFilter(sites=("ber",)))


@pytest.mark.parametrize(
    ("pattern", "address", "expected"),
    [
        ("10.1.0.0/16", "10.1.255.3", True),
        ("10.1.0.0/16", "10.2.0.1", False),
        ("10.1.2.3", "10.1.2.3", True),
        ("10.1.2.3", "10.1.2.33", False),
        ("2001:db8::/32", "2001:db8:1::9", True),
        ("2001:db8::/32", "10.1.2.3", False),
        ("10.1.0.0/16", "sw1.example.net", False),
        ("*.example.net", "SW1.example.net", True),
        ("*.example.net", "example.net", False),
        ("*.example.net", "a.example.net.evil", False),
        ("10.1.2.*", "10.1.2.3", True),
    ],
)
def test_addresses_are_matched_by_network_or_by_pattern(
    pattern: str, address: str, expected: bool
) -> None:
    """A host name matches no network, and an address can also match a pattern."""
    assert AddressMatch([pattern]).accepts(address) is expected


@pytest.mark.parametrize(
    ("pattern", "fits", "fits_not"),
    [
        ("sw-*", ["sw-", "sw-1"], ["xsw-1", "sw"]),
        ("*-fra-*-1", ["a-fra-b-1", "-fra--1", "a-fra-1-fra-2-1"], ["a-fra-1", "a-fra-b-12"]),
        ("a**?b", ["axb", "aaab"], ["ab", "axbc"]),
        ("[a].*", ["[a].", "[a].x"], ["a.x", "[a]"]),
        ("", [""], ["a"]),
    ],
)
def test_a_pattern_fits_the_whole_text(pattern: str, fits: list[str], fits_not: list[str]) -> None:
    """* is any text and ? any character; everything else is itself."""
    expression = re.compile(target_filter.wildcard_expression(pattern))
    assert [text for text in (*fits, *fits_not) if expression.fullmatch(text)] == fits


def test_a_pattern_of_many_wildcards_is_matched_at_once() -> None:
    """It takes one walk through the text, not one for each way to share it among the wildcards."""
    expression = re.compile(target_filter.wildcard_expression("*a" * 40 + "*b"))
    assert expression.fullmatch("a" * 200) is None
    assert expression.fullmatch("a" * 200 + "b")
