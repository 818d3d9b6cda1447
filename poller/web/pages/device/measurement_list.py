"""The gauges and states of a device by group: sensors, processors, memory, storage and others."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby

from poller.domain.series.line_figures import LineFigures
from poller.domain.series.measurements import Unit
from poller.presentation import formatting
from poller.presentation.history import measure_texts, old_values
from poller.service.history.device_measures import MeasurementRow, Rows
from poller.web.pages.device import plot_figures, plots, range_plot
from poller.web.pages.device.plots import Window

_NONE = formatting.NOT_MEASURED


@dataclass(frozen=True, slots=True)
class MeasurementItem:
    """One row of the table. `labels` address its series."""

    name: str
    metric: str
    target: str
    labels: Sequence[str]
    value: str
    age: str  # of an old value, or ""
    share: str  # of the most that it can be, or ""
    lowest: str
    highest: str
    picture: str


@dataclass(frozen=True, slots=True)
class MeasurementGroup:
    """The rows of one group."""

    title: str
    items: Sequence[MeasurementItem]


@dataclass(frozen=True, slots=True)
class MeasurementList:
    """A page of measurements. `read` says how the history was read."""

    groups: Sequence[MeasurementGroup]
    total: int
    names_targets: bool
    read: str
    old: str  # what is said of values that are not of now, or ""


def build_view(found: Rows[MeasurementRow], window: Window, now_ms: int) -> MeasurementList:
    """Return the view of a page of measurements."""
    groups = []
    for group, rows in groupby(found.rows, key=lambda row: row.measurement.group):
        items = [_item(row, window, now_ms) for row in rows]
        groups.append(MeasurementGroup(group.value, items))
    return MeasurementList(
        groups=groups,
        total=found.total,
        names_targets=found.targets > 1,
        read=found.plan.sentence(),
        old=old_values.note(found.read_times, now_ms),
    )


def _item(row: MeasurementRow, window: Window, now_ms: int) -> MeasurementItem:
    measured = row.measurement
    plot = plots.of_measurement(measured, row.line, window) if row.line else None
    figures = plot.lines[0].figures if plot else None
    return MeasurementItem(
        name=measured.name,
        metric=measured.series.name,
        target=row.target.name,
        labels=[f"{name}={text}" for name, text in measured.series.labels],
        value=measure_texts.text(measured.unit, measured.value, measured.series.name, now_ms),
        age=old_values.age(row.target, row.at_ms, now_ms),
        share=_share(row),
        lowest=_text(row, figures, now_ms, lowest=True),
        highest=_text(row, figures, now_ms, lowest=False),
        picture=range_plot.small(plot, plot_figures.sentence(plot)) if plot else "",
    )


def _share(row: MeasurementRow) -> str:
    measured = row.measurement
    if not measured.top or measured.unit is Unit.PERCENT:
        return ""
    return f"{formatting.significant(100 * measured.value / measured.top)} %"


def _text(row: MeasurementRow, figures: LineFigures | None, now_ms: int, *, lowest: bool) -> str:
    if figures is None:
        return _NONE
    measured = row.measurement
    value = figures.lowest if lowest else figures.highest
    scaled = None if value is None else value * measured.scale
    return measure_texts.text(measured.unit, scaled, measured.series.name, now_ms)
