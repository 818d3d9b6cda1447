"""The readings of a poll as JSON: a list of [name, labels, kind, value].

The text of a series up to its value is made once for every shape.
"""

from __future__ import annotations

import json
from math import isfinite

from poller.domain.metrics.reading import Series
from poller.sinks.api import Sample
from poller.sinks.shape_cache import ShapeCache


class PollJson:
    """Not safe for threads: the writer of the sink uses it."""

    def __init__(self) -> None:
        self._prefixes: ShapeCache[list[str]] = ShapeCache()

    def entries(self, sample: Sample) -> list[str]:
        """Return the entry of every reading. NaN and infinity are null."""
        shape = sample.readings.series
        prefixes = self._prefixes.get(shape.id)
        if prefixes is None:
            prefixes = [_prefix(series) for series in shape.series]
            self._prefixes.put(shape.id, prefixes, len(prefixes))
        return [
            f"{prefix}{value!r}]" if isfinite(value) else f"{prefix}null]"
            for prefix, value in zip(prefixes, sample.readings.values, strict=True)
        ]

    def data(self, sample: Sample) -> str:
        """Return all entries as one JSON list."""
        return f"[{','.join(self.entries(sample))}]"


def _prefix(series: Series) -> str:
    fields = [series.name, dict(series.labels), series.kind.value]
    return json.dumps(fields, ensure_ascii=False)[:-1] + ", "
