"""A pure function from the readings of one poll to one line of JSON."""

from __future__ import annotations

import json
from math import isfinite

from poller.sinks.api import Sample


def line(sample: Sample) -> str:
    """Return the line of a sample. NaN and infinity become null, because JSON has neither."""
    readings = []
    values = sample.readings.values
    for series, value in zip(sample.readings.series.series, values, strict=True):
        json_value = value if isfinite(value) else None
        readings.append([series.name, dict(series.labels), series.kind.value, json_value])

    poll = {
        "at_ms": sample.at_ms,
        "device": sample.target.device,
        "target": sample.target.name,
        "collector": sample.target.collector,
        "readings": readings,
    }
    return json.dumps(poll, ensure_ascii=False, separators=(",", ":")) + "\n"
