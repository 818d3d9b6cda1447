"""Series of a range as CSV: a row for each point, for spreadsheets and other programs."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Iterator, Mapping

from poller.presentation.history import spreadsheet_cells
from poller.presentation.history.series_json import SeriesItem

COLUMNS = (
    "time",
    "device",
    "target",
    "metric",
    "labels",
    "value",
    "min",
    "max",
    "known",
    "verdict",
)


def lines(items: Iterable[SeriesItem]) -> Iterator[str]:
    """Yield the text of the file, the heading first, then a piece for each series."""
    yield ",".join(COLUMNS) + "\r\n"
    for item in items:
        yield _text(item)


def _text(item: SeriesItem) -> str:
    text = io.StringIO()
    writer = csv.writer(text)
    points = item.points
    names = [spreadsheet_cells.written(name) for name in (item.device, item.target, item.metric)]
    labels = labels_text(item.labels)
    rows = zip(
        points.at, points.value, points.min, points.max, points.known, points.verdict, strict=True
    )
    for at, *numbers in rows:
        writer.writerow([at, *names, labels, *numbers])
    return text.getvalue()


def labels_text(labels: Mapping[str, str]) -> str:
    """Return labels as one cell: a JSON object, which no spreadsheet takes for a formula."""
    return json.dumps(dict(labels), ensure_ascii=False, separators=(",", ":"))
