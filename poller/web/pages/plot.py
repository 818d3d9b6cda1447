"""Points to SVG. Geometry only: it is stretched to its box, so every word beside it is HTML.

A missing slice breaks the line, a lone slice is a dot, a long hole is shaded. No colours here: classes.
"""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

HEIGHT = 100


@dataclass(frozen=True, slots=True)
class Window:
    """The time shown and the width of one slice, in milliseconds."""

    start_ms: int
    end_ms: int
    slice_ms: int

    @property
    def width(self) -> float:
        return (self.end_ms - self.start_ms) / 1000


@dataclass(frozen=True, slots=True)
class Sample:
    """The value of one slice that begins at `at_ms`; None when nothing was measured."""

    at_ms: int
    value: float | None


@dataclass(frozen=True, slots=True)
class Line:
    css: str
    samples: Sequence[Sample]
    filled: bool = False


def ceiling(value: float) -> float:
    """The least of 1, 2, 5, 10, 20 ... that is not below a value: the top of an axis that starts at 0."""
    if value <= 0:
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (1, 2, 5, 10) if step * power >= value * (1 - 1e-9))


def window(now_ms: int, span_ms: int, slice_ms: int) -> Window:
    """The last span up to the newest complete slice."""
    end = now_ms - now_ms % slice_ms
    return Window(end - span_ms, end, slice_ms)


def visible(samples: Sequence[Sample], shown: Window) -> list[Sample]:
    """Measured, complete slices inside the window, oldest first."""
    last = shown.end_ms - shown.slice_ms
    inside = (s for s in samples if s.value is not None and shown.start_ms <= s.at_ms <= last)
    return sorted(inside, key=lambda sample: sample.at_ms)


def highest(samples: Sequence[Sample], shown: Window) -> float:
    return max((sample.value or 0.0 for sample in visible(samples, shown)), default=0.0)


def gaps(samples: Sequence[Sample], shown: Window, least_ms: int) -> list[tuple[int, int]]:
    """Spans of at least that length which no measured slice covers, as (start, end) in milliseconds."""
    found = []
    covered = shown.start_ms
    for start_ms in [*(sample.at_ms for sample in visible(samples, shown)), shown.end_ms]:
        if start_ms - covered >= least_ms:
            found.append((covered, start_ms))
        covered = max(covered, start_ms + shown.slice_ms)
    return found


def runs(samples: Sequence[Sample], shown: Window) -> list[list[Sample]]:
    """Measured slices cut into stretches without a hole."""
    stretches: list[list[Sample]] = []
    for sample in visible(samples, shown):
        if stretches and sample.at_ms - stretches[-1][-1].at_ms <= shown.slice_ms * 1.5:
            stretches[-1].append(sample)
        else:
            stretches.append([sample])
    return stretches


def svg(
    lines: Sequence[Line],
    shown: Window,
    top: float,
    sentence: str,
    shaded: Sequence[tuple[int, int]] = (),
) -> str:
    """The picture of some lines over one window, with some spans of it shaded."""
    grid = f'<path class="grid" d="{_grid(shown)}"/>'
    return _picture([grid, *_contents(lines, shown, top, shaded)], shown, sentence)


def small(
    line: Line,
    shown: Window,
    sentence: str,
    shaded: Sequence[tuple[int, int]],
    ticks: Sequence[int],
) -> str:
    """A picture for one row of a table, from 0 to its own highest; a tick is drawn from top to bottom."""
    top = highest(line.samples, shown) or 1.0
    upright = "".join(f"M{(at_ms - shown.start_ms) / 1000:g} 0V{HEIGHT}" for at_ms in ticks)
    marks = [f'<path class="tick" d="{upright}"/>'] if ticks else []
    return _picture([*_contents([line], shown, top, shaded), *marks], shown, sentence)


def _contents(
    lines: Sequence[Line], shown: Window, top: float, shaded: Sequence[tuple[int, int]]
) -> list[str]:
    return [
        *(_rect(span, shown) for span in shaded),
        *(part for line in lines for part in _draw(line, shown, top)),
    ]


def _picture(parts: Sequence[str], shown: Window, sentence: str) -> str:
    body = "".join(parts)
    return (
        f'<svg viewBox="0 0 {shown.width:g} {HEIGHT}" preserveAspectRatio="none" role="img" '
        f'aria-label="{html.escape(sentence)}">{body}</svg>'
    )


def _grid(shown: Window) -> str:
    """Top and half of the height, thirds of the time: where the labels beside the picture stand."""
    across = "".join(f"M0 {y:g}H{shown.width:g}" for y in (0, HEIGHT / 2))
    return across + "".join(f"M{shown.width * third / 3:g} 0V{HEIGHT}" for third in (1, 2))


def _draw(line: Line, shown: Window, top: float) -> list[str]:
    stretches = [_points(run, shown, top) for run in runs(line.samples, shown)]
    if not stretches:
        return []
    stroke = "".join(_path(points) for points in stretches)
    parts = [f'<path class="line {line.css}" d="{stroke}"/>']
    if line.filled:
        area = "".join(_area(points) for points in stretches)
        parts.insert(0, f'<path class="area {line.css}" d="{area}"/>')
    return parts


def _points(run: Sequence[Sample], shown: Window, top: float) -> list[tuple[float, float]]:
    """The middles of the slices; a run of several is drawn to the outer edges of its first and last."""
    half = shown.slice_ms / 2000
    points = [
        ((s.at_ms - shown.start_ms) / 1000 + half, HEIGHT * (1 - min(top, s.value or 0.0) / top))
        for s in run
    ]
    if len(points) == 1:
        return points
    (first, low), (last, high) = points[0], points[-1]
    return [(first - half, low), *points, (last + half, high)]


def _path(points: Sequence[tuple[float, float]]) -> str:
    (x, y), *rest = points
    if not rest:
        return f"M{x:g} {y:.4g}h0"  # with a round cap this is a dot, whatever the stretch
    return f"M{x:g} {y:.4g}L" + " ".join(f"{x:g} {y:.4g}" for x, y in rest)


def _area(points: Sequence[tuple[float, float]]) -> str:
    outline = " ".join(f"{x:g} {y:.4g}" for x, y in points)
    return f"M{points[0][0]:g} {HEIGHT}L{outline} {points[-1][0]:g} {HEIGHT}Z"


def _rect(gap: tuple[int, int], shown: Window) -> str:
    x, width = (gap[0] - shown.start_ms) / 1000, (gap[1] - gap[0]) / 1000
    return f'<rect class="gap" x="{x:g}" y="0" width="{width:g}" height="{HEIGHT}"/>'
