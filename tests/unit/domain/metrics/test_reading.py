"""Shapes: a canonical text and id, equal in every process and release."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.metrics.reading import Kind, Labels, Reading, ReadingSet, Series, SeriesSet

OLD_TEXT = '[["octets",{"if":"1"},"counter"],["load",{},"gauge"]]'
OLD = SeriesSet((Series("octets", (("if", "1"),), Kind.COUNTER), Series("load", (), Kind.GAUGE)))


def labels_of(texts: dict[str, str]) -> Labels:
    return tuple(sorted(texts.items()))


def shape_of(series: list[Series]) -> SeriesSet:
    return SeriesSet(tuple(series))


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=12)
ROWS = st.dictionaries(TEXTS, TEXTS, max_size=4).map(labels_of)
SERIES = st.builds(Series, TEXTS, ROWS, st.sampled_from(Kind), st.sampled_from([0, 32, 64]))
SHAPES = st.lists(SERIES, max_size=8).map(shape_of)


@given(SHAPES)
def test_the_text_is_plain_json_and_survives_the_round_trip(shape: SeriesSet) -> None:
    """Any JSON parser reads the stored text."""
    rows = []
    for series in shape.series:
        width = [series.width] if series.width else []
        rows.append([series.name, dict(series.labels), series.kind.value, *width])
    assert shape.to_json() == json.dumps(rows, ensure_ascii=False, separators=(",", ":"))
    assert SeriesSet.from_json(shape.to_json()) == shape


def test_an_id_never_changes() -> None:
    """Stored readings refer to the id."""
    row = (("ifIndex", "1"), ("ifName", "gö/1"))
    shape = SeriesSet((Series("ifInOctets", row, Kind.COUNTER), Series("up", (), Kind.GAUGE)))
    assert shape.id == 4437678243373302520


def test_a_shape_that_was_stored_before_widths_is_the_same_today() -> None:
    """The text and the id of a stored shape never change."""
    assert SeriesSet.from_json(OLD_TEXT) == OLD
    assert OLD.to_json() == OLD_TEXT
    assert OLD.id == -8177876382403160622


def test_a_width_is_a_part_of_the_shape() -> None:
    """A width survives the round trip and makes another shape."""
    wide = SeriesSet((Series("octets", (("if", "1"),), Kind.COUNTER, 64), OLD.series[1]))
    assert wide.to_json() == '[["octets",{"if":"1"},"counter",64],["load",{},"gauge"]]'
    assert SeriesSet.from_json(wide.to_json()) == wide
    assert wide.id != OLD.id


def test_readings_keep_their_width_in_a_set() -> None:
    """A reading of the set equals the reading before."""
    readings = [Reading("a", 1.0, {}, Kind.COUNTER, 32), Reading("b", 2.0, {}, Kind.COUNTER)]
    assert list(ReadingSet.of(readings)) == readings


@given(SHAPES)
def test_a_shared_shape_is_the_same_shape(shape: SeriesSet) -> None:
    """Series, kinds, text and id do not depend on how a shape is held in memory."""
    shared = SeriesSet(shape.series).shared()
    assert shared.series == shape.series
    assert list(shared.kinds) == list(shape.kinds) == [series.kind for series in shape.series]
    assert len(shared) == len(shape) == len(shape.series)
    assert (shared.id, shared.packed, hash(shared)) == (shape.id, shape.packed, hash(shape))
    assert shared == shape


def test_equal_shapes_of_two_devices_are_one_object() -> None:
    """Switches without aliases often have equal shapes, and a worker holds one of them."""
    first = SeriesSet.from_json(OLD_TEXT).shared()
    assert SeriesSet.from_json(OLD_TEXT).shared() is first
    assert SeriesSet.from_json(OLD_TEXT.replace('"1"', '"2"')).shared() is not first


def test_the_series_of_a_row_share_their_labels() -> None:
    """Sinks encode the labels of a row once: they compare identity."""
    row = (("ifIndex", "1"),)
    shape = SeriesSet((Series("in", row, Kind.COUNTER), Series("out", row, Kind.COUNTER))).shared()
    one, other = shape.series
    assert one.labels is other.labels
