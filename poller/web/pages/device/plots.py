"""Plots: which lines are drawn together, in which unit, over which range. Values, no drawing."""

from __future__ import annotations

import enum
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poller.domain.rollups.sample_columns import Group
from poller.domain.series import line_figures, measurements
from poller.domain.series.device_interfaces import Counted, Interface
from poller.domain.series.line_figures import LineFigures
from poller.domain.series.measurements import Measurement, Unit
from poller.domain.series.series_line import SeriesLine
from poller.presentation import counter_units, formatting
from poller.presentation.history import measure_texts


class Axis(enum.StrEnum):
    """The unit of a plot, for the server and for the script of the page."""

    BITS = "bit/s"
    RATE = "/s"
    PERCENT = "%"
    SECONDS = "s"
    BYTES = "B"
    PLAIN = ""


@dataclass(frozen=True, slots=True)
class DrawnLine:
    """A line of a plot: its name, and the factor from its values to the unit of the plot."""

    name: str
    line: SeriesLine
    factor: float = 1.0

    @property
    def is_stepped(self) -> bool:
        """Whether the value holds until the next point: a state is nothing between two values."""
        return self.line.group is Group.STATE

    @property
    def figures(self) -> LineFigures:
        return line_figures.of_line(self.line)


@dataclass(frozen=True, slots=True)
class Plot:
    """Lines of one unit over one range. `limit` is a dashed line, such as the speed of a link."""

    id: str
    title: str
    lines: Sequence[DrawnLine]
    start_ms: int
    end_ms: int
    axis: Axis = Axis.PLAIN
    suffix: str = ""  # of a plain axis: `°C`
    limit: float | None = None
    limit_name: str = ""
    step_ms: int = 0  # 0: each point is a poll; else a bucket of this length from its instant on

    def text(self, value: float | None) -> str:
        """A value of this plot, in the unit of its axis, as people read it."""
        return value_text(self.axis, self.suffix, value)

    @property
    def span(self) -> tuple[float, float]:
        """The lowest and the highest value of the axis."""
        lows, highs = self._extremes()
        low, high = min(lows, default=0.0), max(highs, default=0.0)
        if self.axis is Axis.PERCENT:
            return 0.0, max(100.0, ceiling(high))
        if self.limit is not None and high > 0.5 * self.limit:
            high = max(high, self.limit)
        starts_at_zero = self.axis is not Axis.PLAIN or 0 <= low < 0.5 * high
        if starts_at_zero and low >= 0:
            return 0.0, self._top(high)
        return _around(low, high)

    def _top(self, high: float) -> float:
        if self.axis is Axis.BYTES and high > 0:
            power = 1024.0 ** math.floor(math.log(high, 1024))
            return ceiling(high / power) * power
        return ceiling(high)

    def _extremes(self) -> tuple[list[float], list[float]]:
        lows, highs = [], []
        for each in self.lines:
            low, high = each.line.lowest(), each.line.highest()
            if low is not None and high is not None:
                lows.append(low * each.factor)
                highs.append(high * each.factor)
        return lows, highs


def ceiling(value: float) -> float:
    """The smallest of 1, 2, 3, 4, 5, 6, 8, 10 and their tens that is not below a value."""
    if value <= 0 or not math.isfinite(value):
        return 1.0
    power = 10.0 ** math.floor(math.log10(value))
    steps = (1, 2, 3, 4, 5, 6, 8, 10)
    return next(factor * power for factor in steps if factor * power >= value * (1 - 1e-9))


def _around(low: float, high: float) -> tuple[float, float]:
    """An axis that does not start at 0, in whole steps."""
    if high <= low:
        step = _flat_step(high)
        return (math.floor(low / step) - 1) * step, (math.ceil(high / step) + 1) * step
    step = ceiling((high - low) / 4)
    return math.floor(low / step) * step, math.ceil(high / step) * step


def _flat_step(value: float) -> float:
    """The step of the axis of a line that does not change: a tenth of its power of ten."""
    if value == 0 or not math.isfinite(value):
        return 1.0
    step = 10.0 ** (math.floor(math.log10(abs(value))) - 1)
    return max(1.0, step) if value == round(value) else step


def value_text(axis: Axis, suffix: str, value: float | None) -> str:
    """A value with its unit; `–` for none."""
    if value is None or not math.isfinite(value):
        return formatting.NOT_MEASURED
    if axis is Axis.BITS:
        return formatting.bits(value)
    if axis is Axis.RATE:
        is_small = abs(value) < 0.1
        return f"{measure_texts.number(value)} /s" if is_small else formatting.rate(value)
    if axis is Axis.PERCENT:
        return f"{formatting.significant(value)} %"
    if axis is Axis.SECONDS:
        return measure_texts.seconds(value)
    if axis is Axis.BYTES:
        return formatting.size(round(value))
    return f"{measure_texts.number(value)} {suffix}".rstrip()


@dataclass(frozen=True, slots=True)
class Window:
    """The range of the plots of a page, as it was read."""

    start_ms: int
    end_ms: int
    step_ms: int = 0


def of_interface(
    interface: Interface, lines: Mapping[Counted, SeriesLine], window: Window
) -> list[Plot]:
    """The plots of an interface: traffic, utilisation, errors, discards, packets.

    A plot of what the interface counts is there, too, if nothing is known of the range.
    """
    speed = interface.bits_per_s
    found = [(_OCTETS, traffic(interface, lines, window))]
    if speed:
        used = _pair("utilisation", _OCTETS, Axis.PERCENT, lines, window, 800.0 / speed)
        found.append((_OCTETS, used))
    for plot_id, roles in (("errors", _ERRORS), ("discards", _DISCARDS), ("packets", _PACKETS)):
        found.append((roles, _pair(plot_id, roles, Axis.RATE, lines, window)))
    return [plot for roles, plot in found if any(role in interface.counters for role in roles)]


def traffic(interface: Interface, lines: Mapping[Counted, SeriesLine], window: Window) -> Plot:
    """In and out of an interface in one plot, below the speed of the link."""
    speed = interface.bits_per_s
    plot = _pair("traffic", _OCTETS, Axis.BITS, lines, window, 8.0)
    name = f"speed {formatting.bits(speed)}" if speed else ""
    return replace(plot, limit=speed, limit_name=name)


def of_line(line: SeriesLine, window: Window) -> Plot:
    """The plot of one series: a counter as a rate, a gauge in its unit."""
    metric = line.series.name
    if line.group is not Group.COUNTER:
        return of_measurement(measurements.measurement(line.series, line.key), line, window)
    is_octets = counter_units.counts_octets(metric)
    axis, factor = (Axis.BITS, 8.0) if is_octets else (Axis.RATE, 1.0)
    name = " ".join(text for _, text in line.known_by)
    drawn = DrawnLine(name or metric, line, factor)
    title = f"{name}: {metric}" if name else metric
    return _plot("series", title, [drawn], axis, window)


def of_measurement(found: Measurement, line: SeriesLine, window: Window) -> Plot:
    """The plot of a gauge or state, below what it can be at most."""
    axis, suffix, factor = _AXES.get(found.unit, (Axis.PLAIN, found.unit.value, 1.0))
    drawn = DrawnLine(found.name, line, found.scale * factor)
    plot = replace(_plot("series", found.name, [drawn], axis, window), suffix=suffix)
    if found.top is None or found.unit is Unit.PERCENT:
        return plot
    return replace(plot, limit=found.top, limit_name=f"all: {plot.text(found.top)}")


def thinned(plot: Plot, slices: int) -> Plot:
    """Return a plot with so many points a line if it has many more: the highest of each slice."""
    most = max((len(each.line.points.at_ms) for each in plot.lines), default=0)
    if most <= 2 * slices:
        return plot
    slice_ms = -(-(plot.end_ms - plot.start_ms) // slices)
    lines = [
        replace(
            each,
            line=line_figures.highest_of_slices(each.line, plot.start_ms, slice_ms, slices),
        )
        for each in plot.lines
    ]
    return replace(plot, lines=lines, step_ms=slice_ms)


def renamed(plot: Plot, plot_id: str) -> Plot:
    """Return a plot with another id."""
    return replace(plot, id=plot_id)


def _pair(
    plot_id: str,
    roles: Sequence[Counted],
    axis: Axis,
    lines: Mapping[Counted, SeriesLine],
    window: Window,
    factor: float = 1.0,
) -> Plot:
    drawn = [DrawnLine(role.value, lines[role], factor) for role in roles if role in lines]
    return _plot(plot_id, plot_id.capitalize(), drawn, axis, window)


def _plot(plot_id: str, title: str, drawn: Sequence[DrawnLine], axis: Axis, window: Window) -> Plot:
    return Plot(plot_id, title, drawn, window.start_ms, window.end_ms, axis, step_ms=window.step_ms)


_OCTETS = (Counted.IN_OCTETS, Counted.OUT_OCTETS)
_ERRORS = (Counted.IN_ERRORS, Counted.OUT_ERRORS)
_DISCARDS = (Counted.IN_DISCARDS, Counted.OUT_DISCARDS)
_PACKETS = (Counted.IN_PACKETS, Counted.OUT_PACKETS)
#: The axis of a unit, the text behind its numbers, and the factor to it; others: their own text.
_AXES = {
    Unit.SECONDS: (Axis.SECONDS, "", 1.0),
    Unit.BYTES: (Axis.BYTES, "", 1.0),
    Unit.PERCENT: (Axis.PERCENT, "", 1.0),
    Unit.LEFT: (Axis.PLAIN, "days left", 1 / 86_400),
    Unit.STATE: (Axis.PLAIN, "", 1.0),
    Unit.INSTANT: (Axis.PLAIN, "", 1.0),
}
