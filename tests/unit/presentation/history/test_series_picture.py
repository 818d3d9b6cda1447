"""Pictures of lines: every value has a place, and an axis has the unit that all lines share."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from poller.domain.metrics.reading import Kind, Series
from poller.domain.rollups.sample_columns import Group
from poller.domain.series.series_line import SeriesLine
from poller.presentation.history import series_picture
from poller.presentation.history.series_picture import NamedLine
from tests.unit.domain.series.test_series_line import line

_TEXT = "{http://www.w3.org/2000/svg}text"


def texts(*lines: NamedLine) -> list[str]:
    drawn = series_picture.svg(lines, "title", 0, 3_600_000)
    assert "nan" not in drawn
    assert "inf" not in drawn
    return [each.text or "" for each in ElementTree.fromstring(drawn).iter(_TEXT)]


def counter(name: str) -> NamedLine:
    points = line([10.0, 20.0]).points
    series = Series(name, (), Kind.COUNTER, 64)
    return NamedLine(name, SeriesLine(series, (name, ()), Group.COUNTER, points))


@pytest.mark.parametrize(
    "values",
    [
        [1e308, -1e308, 1e308],
        [-1e300, -1e300],
        [1e300],
        [5e-324, 1e-323],
        [1e16, 1e16 + 2],
        [-50.0, -50.0],
        [0.0, 0.0],
        [],
    ],
)
def test_values_of_any_size_are_drawn(values: list[float]) -> None:
    """The ends of what a number can be are no reason to fail."""
    assert "title" in texts(NamedLine("load", line(values)))


def test_octets_and_packets_share_no_unit() -> None:
    """An axis in bit/s would be wrong for packets."""
    octets, more, packets = map(counter, ("ifHCInOctets", "ifHCOutOctets", "ifHCInUcastPkts"))
    assert any("bit/s" in text for text in texts(octets, more))
    assert any("/s" in text for text in texts(packets))
    for mixed in ((octets, packets), (packets, octets), (octets, NamedLine("load", line([1.0])))):
        assert not any("/s" in text for text in texts(*mixed))
