"""A plot as SVG. The picture is stretched to its box, so it has no text: its labels are HTML.

A gap breaks the line and is shaded, a lone point is a dot, a band shows the lowest and the highest
value of each point, a reset is an upright tick. Colours are in the style sheet.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from poller.domain.rollups.sample_columns import Integers
from poller.domain.series import line_figures
from poller.domain.series.series_line import PointVerdict, SeriesLine
from poller.web.pages.device import plots
from poller.web.pages.device.plots import DrawnLine, Plot

WIDTH, HEIGHT = 1000, 200
_SMALL_HEIGHT = 40
#: Slices of a small picture, which is some 200 pixels wide.
SMALL_SLICES = 72
_MARKS = {PointVerdict.RESET: "reset", PointVerdict.IMPLAUSIBLE: "implausible"}
_Point = tuple[float, float]


class Gap(NamedTuple):
    """A span in which no line of a plot is known."""

    start_ms: int
    end_ms: int


class Mark(NamedTuple):
    """An instant that is marked: a counter was reset, or a value was impossible."""

    at_ms: int
    kind: str


@dataclass(frozen=True, slots=True)
class _Box:
    """Where each instant and value lies in the picture."""

    start_ms: int
    end_ms: int
    bottom: float
    top: float
    height: int

    def x(self, at_ms: float) -> float:
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return round(min(1.0, max(0.0, share)) * WIDTH, 1)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / (self.top - self.bottom)
        return round((1 - min(1.0, max(0.0, share))) * self.height, 1)


def svg(plot: Plot, sentence: str) -> str:
    """Return the picture of a plot; `sentence` describes it for screen readers."""
    box = _box(plot, HEIGHT)
    parts = [f'<path class="grid" d="{_grid(box)}"/>', *_contents(plot, box)]
    if plot.limit is not None and box.bottom <= plot.limit <= box.top:
        y = box.y(plot.limit)
        parts.append(f'<path class="limit" d="M0 {y:g}H{WIDTH}"/>')
    return _picture(parts, HEIGHT, sentence)


def small(plot: Plot, sentence: str) -> str:
    """Return the picture for a row of a table: no grid, no bands, the same gaps and marks.

    Its few slices show their highest values, so that no spike is lost.
    """
    thin = plots.thinned(plot, SMALL_SLICES)
    box = _box(thin, _SMALL_HEIGHT)
    return _picture(list(_contents(thin, box, with_bands=False)), _SMALL_HEIGHT, sentence)


def gaps(plot: Plot) -> list[Gap]:
    """The spans of a plot that no line of it knows, the first and the last one included."""
    known = sorted(span for each in plot.lines for span in _known_spans(plot, each.line))
    found: list[Gap] = []
    until_ms = plot.start_ms
    shortest_ms = _shortest_gap_ms(plot)
    for start_ms, end_ms in known:
        if start_ms - until_ms >= shortest_ms:
            found.append(Gap(until_ms, start_ms))
        until_ms = max(until_ms, end_ms)
    if plot.end_ms - until_ms >= shortest_ms:
        found.append(Gap(until_ms, plot.end_ms))
    return found


def marks(plot: Plot) -> list[Mark]:
    """The resets and impossible values of all lines, each instant once."""
    found: dict[Mark, None] = {}
    for each in plot.lines:
        points = each.line.points
        for at_ms, verdict in zip(points.at_ms.tolist(), points.verdicts, strict=True):
            kind = _MARKS.get(verdict)
            if kind is not None and plot.start_ms <= at_ms <= plot.end_ms:
                found[Mark(at_ms, kind)] = None
    return sorted(found)


def stands_at(plot: Plot, line: SeriesLine) -> Integers:
    """Return where each point is drawn: a bucket at its middle, a poll at its instant."""
    return line.points.at_ms + plot.step_ms // 2


def _known_spans(plot: Plot, line: SeriesLine) -> Iterator[tuple[int, int]]:
    points = line.points
    for first, end in line_figures.known_runs(points):
        first_ms, last_ms = int(points.at_ms[first]), int(points.at_ms[end - 1])
        if plot.step_ms:
            yield first_ms, last_ms + plot.step_ms
        else:
            yield first_ms - int(points.span_ms[first]), last_ms


def _shortest_gap_ms(plot: Plot) -> float:
    """The shortest gap that is shaded: a bucket, or the time in which polls are missing."""
    if plot.step_ms:
        return plot.step_ms
    lengths = [each.line.points.span_ms for each in plot.lines if len(each.line.points.span_ms)]
    usual_ms = max((float(np.median(each)) for each in lengths), default=1.0)
    return usual_ms * line_figures.APART


def _box(plot: Plot, height: int) -> _Box:
    bottom, top = plot.span
    return _Box(plot.start_ms, plot.end_ms, bottom, top, height)


def _contents(plot: Plot, box: _Box, with_bands: bool = True) -> Iterator[str]:
    for gap in gaps(plot):
        x = box.x(gap.start_ms)
        width = round(box.x(gap.end_ms) - x, 1)
        yield f'<rect class="gap" x="{x:g}" y="0" width="{width:g}" height="{box.height}"/>'
    if with_bands:
        for number, each in enumerate(plot.lines, 1):
            outline = "".join(_bands(plot, each, box))
            if outline:
                yield f'<path class="band l{number}" d="{outline}"/>'
    for number, each in enumerate(plot.lines, 1):
        stroke = "".join(_strokes(plot, each, box))
        if stroke:
            yield f'<path class="line l{number}" d="{stroke}"/>'
    for kind in ("reset", "implausible"):
        ticks = "".join(
            f"M{box.x(mark.at_ms):g} 0V{box.height}" for mark in marks(plot) if mark.kind == kind
        )
        if ticks:
            yield f'<path class="tick {kind}" d="{ticks}"/>'


def _bands(plot: Plot, drawn: DrawnLine, box: _Box) -> Iterator[str]:
    points = drawn.line.points
    xs = stands_at(plot, drawn.line)
    for first, end in line_figures.known_runs(points):
        lows, highs = points.low[first:end], points.high[first:end]
        if end - first > 1 and bool((lows != highs).any()):
            there = _placed(xs[first:end], highs, drawn.factor, box)
            back = list(_placed(xs[first:end], lows, drawn.factor, box))
            yield f"M{_text([*there, *reversed(back)])}Z"


def _strokes(plot: Plot, drawn: DrawnLine, box: _Box) -> Iterator[str]:
    points = drawn.line.points
    xs = stands_at(plot, drawn.line)
    for first, end in line_figures.known_runs(points):
        placed = list(_placed(xs[first:end], points.value[first:end], drawn.factor, box))
        if len(placed) == 1:
            x, y = placed[0]
            yield f"M{x:g} {y:g}h0"
        elif drawn.is_stepped:
            yield f"M{_text(_stepped(placed))}"
        else:
            yield f"M{_text(placed)}"


def _placed(
    at_ms: Iterable[float], values: Iterable[float], factor: float, box: _Box
) -> Iterator[_Point]:
    for at, value in zip(at_ms, values, strict=True):
        yield box.x(float(at)), box.y(float(value) * factor)


def _stepped(placed: Sequence[_Point]) -> Iterator[_Point]:
    """The corners of a line that holds each value until the next point."""
    for (x, y), (next_x, _) in pairwise(placed):
        yield x, y
        yield next_x, y
    yield placed[-1]


def _text(points: Iterable[_Point]) -> str:
    return " ".join(f"{x:g} {y:g}" for x, y in points)


def _grid(box: _Box) -> str:
    """Lines at the bottom, half and top, and at each quarter of the time, where the labels are."""
    half = box.height / 2
    across = f"M0 0H{WIDTH}M0 {half:g}H{WIDTH}M0 {box.height}H{WIDTH}"
    upright = "".join(f"M{WIDTH * quarter // 4} 0V{box.height}" for quarter in (1, 2, 3))
    return across + upright


def _picture(parts: Sequence[str], height: int, sentence: str) -> str:
    label = html.escape(sentence)
    return (
        f'<svg viewBox="0 0 {WIDTH} {height}" preserveAspectRatio="none" role="img" '
        f'aria-label="{label}">{"".join(parts)}</svg>'
    )
