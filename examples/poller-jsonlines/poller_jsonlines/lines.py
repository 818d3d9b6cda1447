"""A poll as one line of JSON. Pure."""

from __future__ import annotations

import json
from math import isfinite

from poller.sinks.api import Sample


def line(sample: Sample) -> str:
    """What JSON cannot say (NaN, infinity) is null."""
    target, readings = sample.target, sample.readings
    rows = [
        [series.name, dict(series.labels), series.kind.value, value if isfinite(value) else None]
        for series, value in zip(readings.series.series, readings.values, strict=True)
    ]
    poll = {
        "at_ms": sample.at_ms,
        "device": target.device,
        "target": target.name,
        "collector": target.collector,
    }
    return json.dumps({**poll, "readings": rows}, ensure_ascii=False, separators=(",", ":")) + "\n"
