"""Exported samples as CSV or as lines of JSON: a row for each sample."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from poller.presentation.history.series_csv import labels_text
from poller.presentation.history.series_json import instant
from poller.presentation.history.spreadsheet_cells import written

if TYPE_CHECKING:
    from poller.domain.series.exported_polls import ExportedPolls

COLUMNS = ("time", "device", "target", "metric", "labels", "value", "kind")


def csv_lines(found: Iterable[ExportedPolls]) -> Iterator[str]:
    """Yield the text of a CSV file, the heading first. Labels are a JSON object."""
    yield ",".join(COLUMNS) + "\r\n"
    for polls in found:
        text = io.StringIO()
        writer = csv.writer(text)
        names = [
            (written(each.name), labels_text(dict(each.labels)), each.kind.value)
            for each in polls.series
        ]
        device, target = written(polls.device), written(polls.target)
        for at_ms, values in zip(polls.at_ms, polls.values, strict=True):
            at = instant(at_ms)
            for (metric, labels, kind), value in zip(names, values, strict=True):
                writer.writerow((at, device, target, metric, labels, value, kind))
        yield text.getvalue()


def json_lines(found: Iterable[ExportedPolls]) -> Iterator[str]:
    """Yield lines of JSON. A value that is no finite number is null."""
    for polls in found:
        place = f'"device":{json.dumps(polls.device)},"target":{json.dumps(polls.target)}'
        names = [
            f'{place},"metric":{json.dumps(each.name)},"labels":{labels_text(dict(each.labels))}'
            for each in polls.series
        ]
        kinds = [each.kind.value for each in polls.series]
        for at_ms, values in zip(polls.at_ms, polls.values, strict=True):
            at = instant(at_ms)
            yield "".join(
                f'{{"time":"{at}",{name},"value":{_number(value)},"kind":"{kind}"}}\n'
                for name, value, kind in zip(names, values, kinds, strict=True)
            )


def _number(value: float) -> str:
    return repr(value) if math.isfinite(value) else "null"
