"""Lines of line protocol: rows of fields, escaped names and texts, and what cannot be written."""

from __future__ import annotations

import math
import re
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics import line_protocol
from poller.domain.metrics.line_protocol import Layout, LineForm
from poller.domain.metrics.reading import Kind, Labels, Reading, ReadingSet

AT_MS = 1_700_000_000_123


class Outside(NamedTuple):
    column: int
    name: str
    labels: Labels


def lines(readings: ReadingSet, form: LineForm = LineForm()) -> list[str]:
    outside = [
        Outside(index, series.name, series.labels)
        for index, series in enumerate(readings.series.series)
    ]
    shape = line_protocol.shape_lines(outside, readings.series, "snmp", form)
    return shape.text(readings.values, AT_MS).splitlines()


PORTS = ReadingSet.of(
    [
        Reading("ifInOctets", 10.0, {"ifIndex": "1"}, Kind.COUNTER, 64),
        Reading("sysUpTime", 99.5),
        Reading("ifOutOctets", 20.0, {"ifIndex": "1"}, Kind.COUNTER, 64),
        Reading("ifInOctets", 30.0, {"ifIndex": "2"}, Kind.COUNTER, 64),
    ]
)


def test_series_with_the_same_labels_share_a_line() -> None:
    """A row of a table is one line with a field for every column."""
    assert lines(PORTS) == [
        f"snmp,ifIndex=1 ifInOctets=10.0,ifOutOctets=20.0 {AT_MS}",
        f"snmp sysUpTime=99.5 {AT_MS}",
        f"snmp,ifIndex=2 ifInOctets=30.0 {AT_MS}",
    ]


def test_each_metric_can_be_a_measurement() -> None:
    """The other layout has one field in every line."""
    assert lines(PORTS, LineForm(Layout.METRIC, field="gauge"))[:2] == [
        f"ifInOctets,ifIndex=1 gauge=10.0 {AT_MS}",
        f"sysUpTime gauge=99.5 {AT_MS}",
    ]


def test_counters_can_be_integers() -> None:
    """Only counters of a known width become integers, so that a field never changes its type."""
    written = lines(PORTS, LineForm(integers=True, measurement="interface"))
    assert written[0] == f"interface,ifIndex=1 ifInOctets=10i,ifOutOctets=20i {AT_MS}"
    assert written[1] == f"interface sysUpTime=99.5 {AT_MS}"


def test_values_that_line_protocol_cannot_carry_are_left_out() -> None:
    """NaN, infinity and integers past 63 bits are left out, and the rest of their row is not."""
    readings = ReadingSet.of(
        [
            Reading("unknown", math.nan),
            Reading("known", 1.0),
            Reading("endless", -math.inf, {"port": "1"}),
            Reading("large", 2.0**63, kind=Kind.COUNTER, width=64),
        ]
    )
    assert lines(readings) == [f"snmp known=1.0,large=9.223372036854776e+18 {AT_MS}"]
    assert lines(readings, LineForm(integers=True)) == [f"snmp known=1.0 {AT_MS}"]


def test_a_poll_without_finite_values_has_no_line() -> None:
    """Nothing is written for a poll that found nothing."""
    assert lines(ReadingSet.of([Reading("unknown", math.nan)])) == []


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("plain", "plain"),
        ("a b,c=d", r"a\ b\,c\=d"),
        ("two\r\nlines\tand", r"two\ lines\ and"),
        (r"C:\new", r"C:\new"),
        (r"ends\\", "ends//"),
        (r"a\,b", r"a/\,b"),
        ("50% é", r"50%\ é"),
    ],
)
def test_texts_of_tags_are_escaped(text: str, written: str) -> None:
    """Delimiters are escaped; what no store reads back alike is replaced."""
    readings = ReadingSet.of([Reading("m", 1.0, {"label": text})])
    assert lines(readings) == [f"snmp,label={written} m=1.0 {AT_MS}"]


def test_names_that_influxdb_reserves_are_changed() -> None:
    """A tag named time would be refused, and a line that begins with # is a comment."""
    readings = ReadingSet.of([Reading("#m", 1.0, {"time": "noon", "empty": ""})])
    assert lines(readings, LineForm(Layout.METRIC)) == [f"_m,time_=noon value=1.0 {AT_MS}"]


def test_two_series_that_become_one_are_said() -> None:
    """The first of two series that differ only in a line break is written."""
    readings = ReadingSet.of([Reading("m", 1.0, {"a": "x y"}), Reading("m", 2.0, {"a": "x\ny"})])
    outside = [
        Outside(index, series.name, series.labels)
        for index, series in enumerate(readings.series.series)
    ]
    shape = line_protocol.shape_lines(outside, readings.series, "snmp", LineForm())
    assert shape.doubled == ("m",)
    assert shape.text(readings.values, AT_MS) == rf"snmp,a=x\ y m=1.0 {AT_MS}"


#: The delimiters of a line: not escaped by an odd number of backslashes (VictoriaMetrics), and not
#: preceded by any backslash (InfluxDB 1).
_BY_PARITY = re.compile(r"(?<!\\)(?:\\\\)*[, =]")
_BY_LAST = re.compile(r"(?<!\\)[, =]")


@given(st.text(min_size=1), st.text(min_size=1))
def test_both_ways_to_read_backslashes_find_the_same_delimiters(name: str, text: str) -> None:
    """Whatever a device sends, a line has its tag, its field and its time, and nothing more."""
    readings = ReadingSet.of([Reading("m", 1.0, {name: text})])
    (line,) = lines(readings)
    ends = [found.end() for found in _BY_LAST.finditer(line)]
    assert ends == [found.end() for found in _BY_PARITY.finditer(line)]
    assert [line[end - 1] for end in ends] == [",", "=", " ", "=", " "]
