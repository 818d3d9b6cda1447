"""Samples to SVG: missing values look missing."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.web.pages import plot
from poller.web.pages.plot import Line, Sample, Window

TEN = 10_000
SHOWN = Window(0, 10 * TEN, TEN)


def samples(*numbers: int, value: float = 5.0) -> list[Sample]:
    return [Sample(number * TEN, value) for number in numbers]


def drawn(svg: str, css: str) -> list[ET.Element]:
    return [part for part in ET.fromstring(svg).iter() if css in (part.get("class") or "").split()]


def test_the_axis_ends_at_a_round_number() -> None:
    """The top of the axis is 1, 2 or 5 times a power of ten, and never below the data."""
    assert [plot.ceiling(v) for v in (0, 0.3, 1, 1.1, 1637, 5000, 5001)] == [
        1,
        0.5,
        1,
        2,
        2000,
        5000,
        10000,
    ]


@given(st.floats(min_value=1e-6, max_value=1e12))
def test_the_axis_fits_every_value(value: float) -> None:
    """No value leaves the picture, and the highest value fills at least two fifths."""
    assert value * (1 - 1e-6) <= plot.ceiling(value) <= value * 2.5000001


def test_a_hole_breaks_the_line_and_is_shaded() -> None:
    """Two stretches are two sub-paths, and the span between them is one rectangle."""
    line = Line("polls", samples(0, 1, 2, 6, 7, 8, 9))
    svg = plot.svg([line], SHOWN, 10, "words", plot.gaps(line.samples, SHOWN, TEN))
    (path,) = drawn(svg, "line")
    (gap,) = drawn(svg, "gap")
    assert path.get("d", "").count("M") == 2
    assert (gap.get("x"), gap.get("width")) == ("30", "30")


def test_a_single_sample_is_a_dot() -> None:
    """The dot is a stroke of length zero with a round cap."""
    (path,) = drawn(plot.svg([Line("polls", samples(4))], SHOWN, 10, "words"), "line")
    assert path.get("d") == "M45 50h0"


def test_an_unmeasured_slice_is_not_zero() -> None:
    """A slice without a value is a hole, as is a missing slice."""
    holed = [*samples(0, 1), Sample(2 * TEN, None), *samples(3, 4)]
    assert [len(stretch) for stretch in plot.unbroken(holed, SHOWN)] == [2, 2]


def test_the_incomplete_slice_is_left_out() -> None:
    """The last point does not fall because its ten seconds are not over."""
    shown = plot.window_until(now_ms=103_500, span_ms=10 * TEN, slice_ms=TEN)
    assert shown == SHOWN
    assert [s.at_ms for s in plot.visible(samples(8, 9, 10), shown)] == [80_000, 90_000]


def test_the_description_is_escaped() -> None:
    """A description cannot end its attribute."""
    svg = plot.svg([Line("polls", samples(1))], SHOWN, 10, '"><script>')
    assert ET.fromstring(svg).get("aria-label") == '"><script>'


def test_the_picture_has_no_colours() -> None:
    """Colours are in the style sheet, for both themes."""
    svg = plot.svg([Line("polls", samples(1, 2), filled=True)], SHOWN, 10, "words", [(0, TEN)])
    assert not [p for p in ET.fromstring(svg).iter() if {"fill", "stroke", "style"} & set(p.attrib)]


@pytest.mark.parametrize("value", [0.0, 3.0, 10.0, 99.0])
def test_every_point_stays_inside_the_picture(value: float) -> None:
    """A value above the axis is drawn at its edge."""
    (path,) = drawn(
        plot.svg([Line("polls", samples(3, 4, value=value))], SHOWN, 10, "words"), "line"
    )
    numbers = [float(n) for n in path.get("d", "").replace("M", "").replace("L", " ").split()]
    assert all(0 <= y <= plot.HEIGHT for y in numbers[1::2])


@given(st.sets(st.integers(0, 9)))
def test_gaps_and_slices_cover_the_window_exactly(numbers: set[int]) -> None:
    """Each slice of the window is either measured or inside a gap."""
    missing = plot.gaps(samples(*numbers), SHOWN, TEN)
    inside = {n for n in range(10) if any(start <= n * TEN < end for start, end in missing)}
    assert inside == set(range(10)) - numbers
