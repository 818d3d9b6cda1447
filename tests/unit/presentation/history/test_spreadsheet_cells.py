"""Names of devices, metrics and interfaces in CSV files, which spreadsheets open."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable

from poller.domain.metrics.reading import Kind, Series
from poller.domain.series.exported_polls import ExportedPolls
from poller.presentation.history import sample_text, series_csv, traffic_json
from poller.presentation.history.series_json import LinePoints, SeriesItem
from poller.presentation.history.traffic_json import TrafficItem

FORMULA = '=HYPERLINK("x")'


def formulas(lines: Iterable[str]) -> list[str]:
    cells = [cell for row in csv.reader(io.StringIO("".join(lines))) for cell in row]
    assert any(FORMULA in cell for cell in cells)
    return [cell for cell in cells if cell.startswith(("=", "+", "@"))]


def test_a_name_in_a_file_of_points_is_no_formula() -> None:
    """A metric may be named by a device; numbers stay numbers."""
    points = LinePoints(at=["t"], value=[-1.5], min=[None], max=[None], known=[1.0], verdict=["ok"])
    numbers = dict.fromkeys(("mean", "min", "max", "last", "total"))
    item = SeriesItem(
        device="@sw1",
        target="+snmp",
        metric=FORMULA,
        labels={},
        kind="gauge",
        known_share=1.0,
        points=points,
        **numbers,
    )
    lines = list(series_csv.lines([item]))
    assert formulas(lines) == []
    assert ",-1.5," in lines[1]


def test_the_interface_of_a_report_is_no_formula() -> None:
    """Its name and its alias come from the device."""
    numbers = {
        name: 0.0
        for name, field in TrafficItem.model_fields.items()
        if field.annotation in (float, float | None)
    }
    row = TrafficItem(
        device="sw1",
        target="snmp",
        interface=FORMULA,
        labels={},
        direction="in",
        resolution="raw",
        **numbers,
    )
    assert formulas(traffic_json.csv_lines([row])) == []


def test_an_exported_sample_has_no_formula() -> None:
    """A file of samples is opened by spreadsheets as well."""
    polls = ExportedPolls("sw1", "snmp", [Series(FORMULA, (), Kind.GAUGE)], [0], [[1.0]])
    assert formulas(sample_text.csv_lines([polls])) == []
