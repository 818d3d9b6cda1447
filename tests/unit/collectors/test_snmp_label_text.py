"""Values and indexes print as label texts, as snmp_exporter prints them."""

from __future__ import annotations

import pytest

from poller.collectors.snmp.metrics.label_text import index_text, value_text
from poller.collectors.snmp.wire.value_types import Value


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (b"", "OctetString", ""),
        (b"\x01\x0a", "OctetString", "0x010A"),
        (b"\x02\x00", "Bits", "0x0200"),
        (b"eth0", "DisplayString", "eth0"),
        ("ž".encode(), "DisplayString", "ž"),
        (b"a\xff\xfe\x80b\xe2\x82", "DisplayString", "a�b�"),
        (b"\x02\xfc\x00\x00\x00\x01", "PhysAddress48", "02:FC:00:00:00:01"),
        (b"", "PhysAddress48", "00:00:00:00:00:00"),
        (b"\x02\xfc\x00\x00\x00\x01\x07", "PhysAddress48", "02:FC:00:00:00:01"),
        (b"\x0a\x00\x00\x01", "InetAddressIPv4", "10.0.0.1"),
        (b"", "InetAddressIPv4", "0.0.0.0"),
        (bytes(range(16)), "InetAddressIPv6", "0001:0203:0405:0607:0809:0A0B:0C0D:0E0F"),
        ("1.3.6.1", "OctetString", "1.3.6.1"),
        (4200, "DisplayString", "4200"),
        (None, "DisplayString", ""),
        (1.5, "DisplayString", "1.5"),
        (2.0, "DisplayString", "2"),
    ],
)
def test_values_as_label_texts(value: Value, kind: str, text: str) -> None:
    """Each type prints as in snmp_exporter."""
    assert value_text(value, kind) == text


@pytest.mark.parametrize(
    ("parts", "kind", "text", "rest"),
    [
        ((4, 5), "gauge", "4", (5,)),
        ((), "gauge", "0", ()),
        ((3, 65, 66, 67, 9), "DisplayString", "ABC", (9,)),
        ((2, 1, 255), "OctetString", "0x01FF", ()),
        ((0, 7), "OctetString", "", (7,)),
        ((1, 2, 3), "PhysAddress48", "01:02:03:00:00:00", ()),
        ((10, 0, 0, 1, 5), "InetAddressIPv4", "10.0.0.1", (5,)),
        ((1, 4, 192, 168, 1, 2, 5), "InetAddress", "192.168.1.2", (5,)),
        ((3, 5, 192, 168, 1, 2, 5), "InetAddress", "0x0305C0A8010205", ()),
        ((1, 192, 168, 1, 2), "InetAddressMissingSize", "192.168.1.2", ()),
        ((9, 1, 2), "InetAddressMissingSize", "0x090102", ()),
        ((3, 6, 1, 2, 3, 4, 5, 6), "LldpPortId", "01:02:03:04:05:06", ()),
        ((8, 2, 104, 105), "LldpPortId", "0x08026869", ()),
    ],
)
def test_indexes(parts: tuple[int, ...], kind: str, text: str, rest: tuple[int, ...]) -> None:
    """An index takes parts from the left, missing parts are 0, and the rest stays."""
    got, _, left = index_text(parts, kind)
    assert (got, left) == (text, rest)


def test_fixed_and_implied_strings_have_no_length() -> None:
    """The module fixes the size, or an implied string takes all parts."""
    assert index_text((65, 66, 7), "DisplayString", fixed_size=2) == ("AB", (65, 66), (7,))
    assert index_text((65, 66, 67), "DisplayString", implied=True) == ("ABC", (65, 66, 67), ())


def test_a_false_length_costs_no_memory() -> None:
    """An index that claims four billion octets is cut off."""
    text, _, _ = index_text((4_294_967_295, 65), "DisplayString")
    assert len(text) <= 512
