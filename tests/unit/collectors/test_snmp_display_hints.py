"""Octets are shown by RFC 2579's DISPLAY-HINT as snmp_exporter applies it."""

from __future__ import annotations

import pytest

from poller.collectors.snmp.metrics import display_hints
from poller.collectors.snmp.metrics.label_text import value_text


@pytest.mark.parametrize(
    ("hint", "octets", "shown"),
    [
        ("1d.1d.1d.1d", bytes([10, 9, 8, 7]), "10.9.8.7"),
        ("1d.1d.1d.1d", bytes([10, 9]), "10.9"),
        ("1d.1d.1d.1d%4d", bytes([10, 9, 8, 7, 0, 0, 1, 0]), "10.9.8.7%256"),
        ("1x:", bytes([0, 0x1F, 0xA0]), "00:1F:A0"),
        ("1x", b"\x0a", "0A"),
        ("2x:2x", bytes([0xFE, 0x80, 0, 1]), "FE80:0001"),
        ("255a", b"box 7", "box 7"),
        ("3t", "žluť".encode(), "žluť"),
        ("4d", bytes([1, 0, 0, 0]), "16777216"),
        ("1o", b"\x09", "11"),
        ("2d-1d-1d,1d:1d", bytes([7, 230, 2, 3, 4, 5]), "2022-2-3,4:5"),
        ("1d-1d.", bytes([1, 2, 3, 4]), "1-2.3.4"),
        ("*1x:", bytes([2, 0xAA, 0xBB]), "AA:BB"),
        ("*1d./1d", bytes([2, 5, 6, 7]), "5.6/7"),
        ("*1d./1d", bytes([0, 7]), "/7"),
        ("0a[1d]1d", bytes([1, 2]), "[1]2"),
        ("1d-0d.1d", bytes([5, 6]), "5-0.6"),
        ("1d", bytes([1, 2]), "12"),
        ("1d?1z", b"\x05", "5"),
        ("999999999999d", b"\x01\x00", "256"),
    ],
)
def test_hints(hint: str, octets: bytes, shown: str) -> None:
    """Parts take octets from the left, the last part repeats, and no separator ends the text."""
    assert value_text(octets, "OctetString", hint) == shown


@pytest.mark.parametrize("hint", ["x", "1", "1z", "d1", "0d", "0a.", "*", "9d", "9o", "1d1", "é"])
def test_an_invalid_hint_is_ignored(hint: str) -> None:
    """The octets are shown in hexadecimal."""
    assert display_hints.apply(hint, bytes(9)) is None
    assert value_text(bytes(9), "", hint) == "0x" + "00" * 9


def test_a_hint_applies_to_plain_octets_only() -> None:
    """Typed octets, numbers and empty octets ignore the hint."""
    assert value_text(b"\x01", "DisplayString", "1d") == "\x01"
    assert value_text(7, "OctetString", "1x") == "7"
    assert value_text(b"", "OctetString", "1x") == ""
    assert value_text(b"A\xff\xfe", "OctetString", "9a") == "A�"
