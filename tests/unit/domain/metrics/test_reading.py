"""Shapes: the same text and id for ever, with a counter's width only where it is known."""

from __future__ import annotations

from poller.domain.metrics.reading import Kind, Reading, ReadingSet, Series, SeriesSet

OLD_TEXT = '[["octets",{"if":"1"},"counter"],["load",{},"gauge"]]'
OLD = SeriesSet((Series("octets", (("if", "1"),), Kind.COUNTER), Series("load", (), Kind.GAUGE)))


def test_a_shape_that_was_stored_before_widths_is_the_same_today() -> None:
    """Its text, and with it the id under which years of readings are stored."""
    assert SeriesSet.from_json(OLD_TEXT) == OLD
    assert OLD.to_json() == OLD_TEXT
    assert OLD.id == -8177876382403160622


def test_a_width_is_a_part_of_the_shape() -> None:
    """It comes back as it went, and makes another shape."""
    wide = SeriesSet((Series("octets", (("if", "1"),), Kind.COUNTER, 64), OLD.series[1]))
    assert wide.to_json() == '[["octets",{"if":"1"},"counter",64],["load",{},"gauge"]]'
    assert SeriesSet.from_json(wide.to_json()) == wide
    assert wide.id != OLD.id


def test_readings_keep_their_width_on_the_way_through_a_set() -> None:
    """One by one or together."""
    given = [Reading("a", 1.0, {}, Kind.COUNTER, 32), Reading("b", 2.0, {}, Kind.COUNTER)]
    assert list(ReadingSet.of(given)) == given
