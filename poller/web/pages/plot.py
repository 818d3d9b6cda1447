"""Samples to SVG. The picture is stretched to its box, so it has no text: its labels are HTML.

A missing slice breaks the line, a single slice is a dot, a long hole is shaded. Colours are in the
style sheet; the picture has only classes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 100

#: Start and end of a span without a measurement, in milliseconds.
Gap = tuple[int, int]
_Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Window:
    """The time that a picture covers, and the length of one slice."""

    start_ms: int
    end_ms: int
    slice_ms: int

    @property
    def width(self) -> float:
        """The width of the picture: one unit per second."""
        return (self.end_ms - self.start_ms) / 1000

    def x(self, at_ms: float) -> float:
        """The horizontal position of an instant."""
        return (at_ms - self.start_ms) / 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of the slice that starts at `at_ms`; None when nothing was measured."""

    at_ms: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Line:
    css: str
    samples: Sequence[Sample]
    filled: bool = False


def ceiling(value: float) -> float:
    """The smallest of 1, 2, 5, 10, 20 ... that is not below a value: the top of an axis from 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    for factor in (1, 2, 5):
        step = factor * power
        if step >= value * (1 - 1e-9):
            return step
    return 10 * power


def window_until(now_ms: int, span_ms: int, slice_ms: int) -> Window:
    """The window of a span that ends with the newest complete slice."""
    end_ms = now_ms - now_ms % slice_ms
    return Window(end_ms - span_ms, end_ms, slice_ms)


def visible(samples: Sequence[Sample], window: Window) -> list[Sample]:
    """The measured, complete slices inside the window, oldest first."""
    first_ms = window.start_ms
    last_ms = window.end_ms - window.slice_ms

    found = []
    for sample in samples:
        if sample.value is not None and first_ms <= sample.at_ms <= last_ms:
            found.append(sample)
    found.sort(key=lambda sample: sample.at_ms)
    return found


def highest(samples: Sequence[Sample], window: Window) -> float:
    """The highest visible value; 0 without one."""
    values = [sample.value or 0.0 for sample in visible(samples, window)]
    return max(values, default=0.0)


def gaps(samples: Sequence[Sample], window: Window, minimum_ms: int) -> list[Gap]:
    """The spans of at least `minimum_ms` without a measured slice."""
    starts = [sample.at_ms for sample in visible(samples, window)]
    starts.append(window.end_ms)

    found = []
    covered_until = window.start_ms
    for start_ms in starts:
        if start_ms - covered_until >= minimum_ms:
            found.append((covered_until, start_ms))
        covered_until = max(covered_until, start_ms + window.slice_ms)
    return found


def unbroken(samples: Sequence[Sample], window: Window) -> list[list[Sample]]:
    """The visible slices, cut at every hole."""
    stretches: list[list[Sample]] = []
    previous_ms = -math.inf
    for sample in visible(samples, window):
        if sample.at_ms - previous_ms > window.slice_ms * 1.5:
            stretches.append([])
        stretches[-1].append(sample)
        previous_ms = sample.at_ms
    return stretches


def svg(
    lines: Sequence[Line],
    window: Window,
    top: float,
    sentence: str,
    shaded: Sequence[Gap] = (),
) -> str:
    """A picture of lines over one window. `sentence` describes it for screen readers."""
    grid = f'<path class="grid" d="{_grid(window)}"/>'
    contents = _contents(lines, window, top, shaded)
    return _picture([grid, *contents], window, sentence)


def small(
    line: Line,
    window: Window,
    sentence: str,
    shaded: Sequence[Gap],
    ticks: Sequence[int],
) -> str:
    """A picture for a table row, from 0 to its own maximum. A tick is a line from top to bottom."""
    top = highest(line.samples, window) or 1.0
    parts = _contents([line], window, top, shaded)
    if ticks:
        strokes = [f"M{window.x(at_ms):g} 0V{HEIGHT}" for at_ms in ticks]
        path = "".join(strokes)
        parts.append(f'<path class="tick" d="{path}"/>')
    return _picture(parts, window, sentence)


def _contents(
    lines: Sequence[Line], window: Window, top: float, shaded: Sequence[Gap]
) -> list[str]:
    parts = [_rect(gap, window) for gap in shaded]
    for line in lines:
        parts += _draw(line, window, top)
    return parts


def _picture(parts: Sequence[str], window: Window, sentence: str) -> str:
    body = "".join(parts)
    label = html.escape(sentence)
    return (
        f'<svg viewBox="0 0 {window.width:g} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{body}</svg>'
    )


def _grid(window: Window) -> str:
    """Lines at the top, at half the height and at each third of the time, where the labels are."""
    width = window.width
    half = HEIGHT / 2
    across = f"M0 0H{width:g}M0 {half:g}H{width:g}"

    third = width / 3
    two_thirds = width * 2 / 3
    upright = f"M{third:g} 0V{HEIGHT}M{two_thirds:g} 0V{HEIGHT}"
    return across + upright


def _draw(line: Line, window: Window, top: float) -> list[str]:
    """The paths of a line: its stroke, and the area below it when it is filled."""
    stretches = [_points(samples, window, top) for samples in unbroken(line.samples, window)]
    if not stretches:
        return []

    parts = []
    if line.filled:
        area = "".join(_area(points) for points in stretches)
        parts.append(f'<path class="area {line.css}" d="{area}"/>')

    stroke = "".join(_path(points) for points in stretches)
    parts.append(f'<path class="line {line.css}" d="{stroke}"/>')
    return parts


def _points(samples: Sequence[Sample], window: Window, top: float) -> list[_Point]:
    """The middles of the slices; several slices also have the outer edges of the first and last."""
    half_slice = window.slice_ms / 2000
    points = []
    for sample in samples:
        x = window.x(sample.at_ms) + half_slice
        share = min(top, sample.value or 0.0) / top
        y = HEIGHT * (1 - share)
        points.append((x, y))

    if len(points) == 1:
        return points

    first_x, first_y = points[0]
    last_x, last_y = points[-1]
    left_edge = (first_x - half_slice, first_y)
    right_edge = (last_x + half_slice, last_y)
    return [left_edge, *points, right_edge]


def _path(points: Sequence[_Point]) -> str:
    """A line through points; a single point is a dot, drawn by the round cap of a stroke."""
    (x, y), *rest = points
    start = f"M{x:g} {y:.4g}"
    if not rest:
        return f"{start}h0"
    return f"{start}L{_coordinates(rest)}"


def _area(points: Sequence[_Point]) -> str:
    """The area between points and the bottom of the picture."""
    first_x, _ = points[0]
    last_x, _ = points[-1]
    outline = _coordinates(points)
    return f"M{first_x:g} {HEIGHT}L{outline} {last_x:g} {HEIGHT}Z"


def _coordinates(points: Sequence[_Point]) -> str:
    pairs = [f"{x:g} {y:.4g}" for x, y in points]
    return " ".join(pairs)


def _rect(gap: Gap, window: Window) -> str:
    """The shade of a span without a measurement."""
    start_ms, end_ms = gap
    x = window.x(start_ms)
    width = (end_ms - start_ms) / 1000
    return f'<rect class="gap" x="{x:g}" y="0" width="{width:g}" height="{HEIGHT}"/>'
