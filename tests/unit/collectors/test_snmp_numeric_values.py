"""Numbers from SNMP values, as snmp_exporter computes them."""

from __future__ import annotations

import pytest

from poller.collectors.snmp.metrics.numeric_values import number
from poller.collectors.snmp.wire.value_types import Value


@pytest.mark.parametrize(
    ("value", "meaning"),
    [
        (5, 5),
        (-5, -5),
        (b"12", 0),
        ("42", 42),
        ("10.0.0.1", 0),
        (None, 0),
        (b"\x9fx\x04\x3f\xc0\x00\x00", 1.5),
        (b"\x9fy\x08\x40\x45\x00\x00\x00\x00\x00\x00", 42.0),
    ],
)
def test_what_counts_as_a_number(value: Value, meaning: float) -> None:
    """Octets and text are 0, except numeric text and floats in Opaque octets."""
    assert number(value) == meaning
