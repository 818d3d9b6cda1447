"""Lines of a range as an SVG picture, with axes. Time without a value is a gap in the line.

A band shows the lowest and the highest value of each point. The picture loads nothing, and every
text of a device is escaped.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING

from poller.domain.series import line_figures
from poller.presentation import counter_units, formatting

if TYPE_CHECKING:
    from poller.domain.rollups.sample_columns import Floats, Integers
    from poller.domain.series.series_line import SeriesLine

WIDTH = 960
#: Lines that one picture shows; more cannot be told apart.
MOST_LINES = 10
_PLOT_HEIGHT = 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 90, 20, 40, 30
_LEGEND_HEIGHT = 18
#: Colours that people with any colour vision tell apart (Okabe and Ito), repeated.
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
#: Axes go no further, and no finer: numbers of the computer end not far beyond.
_LARGEST, _SMALLEST, _SMALLEST_SHARE = 1e300, 1e-300, 1e-12
_MINUTE_MS = 60_000
_DAY_MS = 86_400_000
_TIME_STEPS_MS = tuple(
    minutes * _MINUTE_MS
    for minutes in (1, 5, 10, 30, 60, 180, 360, 720, 1440, 2880, 10_080, 43_200, 129_600)
)


@dataclass(frozen=True, slots=True)
class NamedLine:
    """A line and its name in the legend."""

    name: str
    line: SeriesLine


@dataclass(frozen=True, slots=True)
class _Frame:
    """The range of the picture, and where each instant and value lies in it."""

    start_ms: int
    end_ms: int
    bottom: float
    top: float

    def x(self, at_ms: float) -> float:
        share = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return round(_LEFT + share * (WIDTH - _LEFT - _RIGHT), 1)

    def y(self, value: float) -> float:
        share = (value - self.bottom) / (self.top - self.bottom)
        return round(_TOP + (1 - share) * _PLOT_HEIGHT, 1)

    def xs(self, at_ms: Integers) -> list[float]:
        """Return the places of many instants at once."""
        shares = (at_ms - self.start_ms) / (self.end_ms - self.start_ms)
        return _rounded(_LEFT + shares * (WIDTH - _LEFT - _RIGHT))

    def ys(self, values: Floats) -> list[float]:
        """Return the places of many values at once."""
        shares = (values - self.bottom) / (self.top - self.bottom)
        return _rounded(_TOP + (1 - shares) * _PLOT_HEIGHT)


def svg(lines: Sequence[NamedLine], title: str, start_ms: int, end_ms: int) -> str:
    """Return the picture of lines, at most `MOST_LINES`; the title says what was read."""
    shown = lines[:MOST_LINES]
    frame = _frame(shown, start_ms, end_ms)
    height = _TOP + _PLOT_HEIGHT + _BOTTOM + _LEGEND_HEIGHT * (len(shown) + 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" '
        f'width="{WIDTH}" height="{height}" font-family="sans-serif" font-size="12">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        _text(_LEFT, 22, title, size=14),
        *_value_axis(frame, _unit(shown)),
        *_time_axis(frame),
    ]
    for place, each in enumerate(shown):
        colour = _COLOURS[place % len(_COLOURS)]
        parts += _drawn(each.line, frame, colour)
        y = _TOP + _PLOT_HEIGHT + _BOTTOM + _LEGEND_HEIGHT * (place + 1)
        parts.append(f'<rect x="{_LEFT}" y="{y - 9}" width="14" height="9" fill="{colour}"/>')
        parts.append(_text(_LEFT + 20, y, each.name))
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _frame(lines: Sequence[NamedLine], start_ms: int, end_ms: int) -> _Frame:
    highs = [high for each in lines if (high := each.line.highest()) is not None]
    lows = [low for each in lines if (low := each.line.lowest()) is not None]
    bottom = max(-_LARGEST, min(0.0, min(lows, default=0.0)))
    top = min(_LARGEST, max(highs, default=1.0))
    smallest = max(abs(top), abs(bottom)) * _SMALLEST_SHARE or _SMALLEST
    step = _nice(max((top - bottom) / 5, smallest) if top > bottom else max(1.0, smallest))
    return _Frame(
        start_ms, end_ms, math.floor(bottom / step) * step, (math.floor(top / step) + 1) * step
    )


def _nice(number: float) -> float:
    """Return the next of 1, 2, 5, 10, 20 and so on that is not smaller."""
    power = 10.0 ** math.floor(math.log10(number))
    return next(factor * power for factor in (1, 2, 5, 10) if factor * power >= number * 0.999)


def _unit(lines: Sequence[NamedLine]) -> Callable[[float], str]:
    """Return how a value of these lines is written; counters of one unit have that unit."""
    units = {
        counter_units.per_second(each.line.series.name, 1.0)
        if each.line.group.value == "counter"
        else ""
        for each in lines
    }
    if len(units) == 1 and units != {""}:
        counter = lines[0].line.series.name
        return lambda value: counter_units.per_second(counter, value)
    return lambda value: f"{value:.6g}"


def _value_axis(frame: _Frame, written: Callable[[float], str]) -> Iterator[str]:
    step = _nice((frame.top - frame.bottom) / 6)
    for place in range(round((frame.top - frame.bottom) / step) + 1):
        value = frame.bottom + place * step
        y = frame.y(value)
        if y < _TOP - 1:
            continue
        yield f'<path d="M{_LEFT} {y}H{WIDTH - _RIGHT}" stroke="#ddd"/>'
        yield _text(_LEFT - 8, y + 4, written(value), anchor="end")


def _time_axis(frame: _Frame) -> Iterator[str]:
    length_ms = frame.end_ms - frame.start_ms
    step_ms = next((step for step in _TIME_STEPS_MS if length_ms / step <= 8), length_ms)
    first_ms = -(-frame.start_ms // step_ms) * step_ms
    foot = _TOP + _PLOT_HEIGHT
    for at_ms in range(first_ms, frame.end_ms + 1, step_ms):
        x = frame.x(at_ms)
        text = formatting.instant(at_ms)
        shown = text[:10] if step_ms >= _DAY_MS else text[11:16]
        if step_ms < _DAY_MS and at_ms % _DAY_MS == 0:
            shown = text[5:10]
        yield f'<path d="M{x} {_TOP}V{foot}" stroke="#eee"/>'
        yield _text(x, foot + 18, shown, anchor="middle")
    yield f'<path d="M{_LEFT} {_TOP}V{foot}H{WIDTH - _RIGHT}" fill="none" stroke="#444"/>'
    yield _text(WIDTH - _RIGHT, foot + 30, "UTC", anchor="end")


def _drawn(line: SeriesLine, frame: _Frame, colour: str) -> Iterator[str]:
    """Draw each run of points with a value: a band from lowest to highest, and the mean."""
    for first, end in line_figures.known_runs(line.points):
        points = line.points
        xs = frame.xs(points.at_ms[first:end])
        means, lows, highs = (
            frame.ys(column[first:end]) for column in (points.value, points.low, points.high)
        )
        if lows != highs:
            outline = [*zip(xs, highs, strict=True), *reversed(list(zip(xs, lows, strict=True)))]
            yield f'<path d="{_path(outline)}Z" fill="{colour}" fill-opacity="0.15"/>'
        if len(xs) == 1:
            yield f'<circle cx="{xs[0]}" cy="{means[0]}" r="1.5" fill="{colour}"/>'
        else:
            path = _path(zip(xs, means, strict=True))
            yield f'<path d="{path}" fill="none" stroke="{colour}" stroke-width="1.5"/>'


def _path(points: Iterable[tuple[float, float]]) -> str:
    return "M" + "L".join(map("%s %s".__mod__, points))


def _rounded(numbers: Floats) -> list[float]:
    found: list[float] = numbers.round(1).tolist()
    return found


def _text(x: float, y: float, text: str, anchor: str = "start", size: int = 12) -> str:
    shown = escape(formatting.visible(text))
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-size="{size}">{shown}</text>'
