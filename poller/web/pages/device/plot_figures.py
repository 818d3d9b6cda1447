"""Plots as figures of a page: picture, labels, legend with figures, and what is missing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from poller.domain.rollups.sample_columns import Floats
from poller.domain.series import line_figures
from poller.presentation import formatting
from poller.web.pages.device import range_plot
from poller.web.pages.device.plots import DrawnLine, Plot

_DAY_MS = 86_400_000
#: Rows of the table of a plot; a range has fewer points.
MOST_ROWS = 1_500
#: Value, lowest and highest of a point.
_Cell = tuple[float | str, float | str, float | str]
_ELSEWHERE: _Cell = ("", "", "")


@dataclass(frozen=True, slots=True)
class LegendRow:
    """The figures of one line. `key` is the class of its colour and dash."""

    key: str
    name: str
    last: str
    mean: str
    highest: str
    p95: str
    total: str  # "" for what has no total


@dataclass(frozen=True, slots=True)
class Figure:
    """A plot as a page shows it."""

    id: str
    title: str
    svg: str
    axis: Sequence[str]  # top, half, bottom
    ticks: Sequence[str]  # at each quarter of the time
    legend: Sequence[LegendRow]
    limit: str  # the text of the dashed line, or ""
    notes: Sequence[str]  # gaps, resets, impossible values


@dataclass(frozen=True, slots=True)
class TableRow:
    """One point of all lines of a plot."""

    at: str
    values: Sequence[str]
    verdict: str  # "" for a good one


@dataclass(frozen=True, slots=True)
class PlotTable:
    """The points of a plot as text."""

    title: str
    names: Sequence[str]
    rows: Sequence[TableRow]


def figure(plot: Plot) -> Figure:
    """Return a plot with its picture."""
    bottom, top = plot.span
    axis = [plot.text(value) for value in (top, (top + bottom) / 2, bottom)]
    is_shown = plot.limit is not None and bottom <= plot.limit <= top
    return Figure(
        id=plot.id,
        title=plot.title,
        svg=range_plot.svg(plot, sentence(plot)),
        axis=axis,
        ticks=ticks(plot.start_ms, plot.end_ms),
        legend=[_legend(number, each, plot) for number, each in enumerate(plot.lines, 1)],
        limit=plot.limit_name if is_shown else "",
        notes=notes(plot),
    )


def sentence(plot: Plot) -> str:
    """A plot in words, for screen readers."""
    length = formatting.duration(plot.end_ms - plot.start_ms)
    parts = []
    for each in plot.lines:
        found = each.figures
        if found.last is None:
            parts.append(f"{each.name}: nothing is known")
            continue
        low, high, last = (
            plot.text(None if value is None else value * each.factor)
            for value in (found.lowest, found.highest, found.last)
        )
        parts.append(f"{each.name}: {low} to {high}, latest {last}")
    said = "; ".join([*parts, *notes(plot)])
    return f"{plot.title} over {length}: {said or 'nothing is known'}."


def notes(plot: Plot) -> list[str]:
    """The gaps of a plot, and the marks in it."""
    found = []
    missing_ms = sum(gap.end_ms - gap.start_ms for gap in range_plot.gaps(plot))
    if missing_ms:
        found.append(f"no values for {formatting.duration(missing_ms)}")
    marks = range_plot.marks(plot)
    resets = sum(mark.kind == "reset" for mark in marks)
    odd = len(marks) - resets
    if resets:
        found.append(formatting.counted(resets, "counter reset"))
    if odd:
        found.append(formatting.counted(odd, "impossible value"))
    return found


def ticks(start_ms: int, end_ms: int) -> list[str]:
    """The times at each quarter of a range in UTC, as short as they are unambiguous."""
    length_ms = end_ms - start_ms
    return [_tick(start_ms + length_ms * quarter // 4, length_ms) for quarter in range(5)]


def table(plot: Plot) -> PlotTable:
    """Return the points of a plot, the newest first."""
    values: dict[int, list[str]] = {}
    verdicts: dict[int, str] = {}
    width = len(plot.lines)
    for place, each in enumerate(plot.lines):
        points = each.line.points
        rows = zip(points.at_ms.tolist(), points.value.tolist(), points.verdicts, strict=True)
        for at_ms, value, verdict in rows:
            cells = values.setdefault(at_ms, [formatting.NOT_MEASURED] * width)
            cells[place] = plot.text(value * each.factor)
            if verdict != "ok":
                verdicts[at_ms] = verdict.value
    newest_first = sorted(values, reverse=True)[:MOST_ROWS]
    found = [
        TableRow(formatting.instant(at_ms), values[at_ms], verdicts.get(at_ms, ""))
        for at_ms in newest_first
    ]
    return PlotTable(plot.title, [each.name for each in plot.lines], found)


def document(plot: Plot) -> dict[str, object]:
    """A plot for the script of the page: columns that share their instants.

    Null breaks a line; "" stands where only another line of the plot has a point.
    """
    columns = [_columns(plot, each) for each in plot.lines]
    instants = sorted({at_ms for column in columns for at_ms in column})
    bottom, top = plot.span
    return {
        "id": plot.id,
        "title": plot.title,
        "axis": plot.axis.value,
        "suffix": plot.suffix,
        "start": plot.start_ms,
        "end": plot.end_ms,
        "bottom": bottom,
        "top": top,
        "limit": plot.limit,
        "at": instants,
        "lines": [_line(each, column, instants) for each, column in zip(
            plot.lines, columns, strict=True)],
        "gaps": [[gap.start_ms, gap.end_ms] for gap in range_plot.gaps(plot)],
        "marks": [[mark.at_ms, mark.kind] for mark in range_plot.marks(plot)],
        "notes": notes(plot),
        "ticks": ticks(plot.start_ms, plot.end_ms),
    }  # fmt: skip


def _line(
    drawn: DrawnLine, column: Mapping[int, _Cell | None], instants: Sequence[int]
) -> dict[str, object]:
    cells = [column.get(at_ms, _ELSEWHERE) for at_ms in instants]
    return {
        "name": drawn.name,
        "stepped": drawn.is_stepped,
        "value": [cell and cell[0] for cell in cells],
        "low": [cell and cell[1] for cell in cells],
        "high": [cell and cell[2] for cell in cells],
    }


def _columns(plot: Plot, drawn: DrawnLine) -> dict[int, _Cell | None]:
    """Value, lowest and highest by instant. A null ends each run of known points."""
    points = drawn.line.points
    at_ms = range_plot.stands_at(plot, drawn.line)
    found: dict[int, _Cell | None] = {}
    for first, end in line_figures.known_runs(points):
        columns = (points.value, points.low, points.high)
        numbers = [_rounded(column[first:end] * drawn.factor) for column in columns]
        instants = at_ms[first:end].tolist()
        found.update(zip(instants, zip(*numbers, strict=True), strict=True))
        found[int(at_ms[end - 1]) + 1] = None
    return found


def _rounded(column: Floats) -> list[float]:
    """Six digits, as many as a screen can show."""
    return [float(f"{number:.6g}") for number in column.tolist()]


def _legend(number: int, drawn: DrawnLine, plot: Plot) -> LegendRow:
    found = drawn.figures

    def text(value: float | None) -> str:
        return plot.text(None if value is None else value * drawn.factor)

    total = ""
    if found.total is not None and plot.axis.value == "bit/s":
        total = formatting.size(round(found.total))
    elif found.total is not None and plot.axis.value == "/s":
        total = formatting.count(round(found.total))
    return LegendRow(
        key=f"l{number}",
        name=drawn.name,
        last=text(found.last),
        mean=text(found.mean),
        highest=text(found.highest),
        p95=text(found.p95),
        total=total,
    )


def _tick(at_ms: int, length_ms: int) -> str:
    text = formatting.instant(at_ms)
    if length_ms <= _DAY_MS:
        return text[11:16]
    if length_ms <= 10 * _DAY_MS:
        return f"{text[5:10]} {text[11:16]}"
    return text[:10]
