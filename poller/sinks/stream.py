"""The `stream` sink: polls as entries of one bounded Redis stream, for any program to follow.

`XREAD BLOCK 0 STREAMS poller:readings $` gives, per poll: target, device, collector, at_ms, series
(the series set's id) and data: a JSON list of [name, labels, kind, value].
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

import redis

from poller.domain.metrics.reading import Series, SeriesSet
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.state.redis_client import store_errors


class StreamSink:
    name: ClassVar[str] = "stream"
    api_version: ClassVar[int] = API_VERSION

    def __init__(self, stores: Stores) -> None:
        self._redis: redis.Redis = stores.redis
        self._key = f"{stores.settings.key_prefix}readings"
        self._length: int = stores.settings.stream_length
        self._prefixes = _PrefixCache()

    def write(self, samples: Sequence[Sample]) -> None:
        """Append the polls in one pipeline. A full stream drops its oldest entries."""
        pipe = self._redis.pipeline(transaction=False)
        for sample in samples:
            pipe.xadd(self._key, self._fields(sample), maxlen=self._length, approximate=True)
        with store_errors(self._redis):
            pipe.execute()

    def close(self) -> None:
        """Close nothing: the client belongs to the platform."""

    def _fields(self, sample: Sample) -> dict[Any, Any]:
        return {
            "target": sample.target.id,
            "device": sample.target.device,
            "collector": sample.target.collector,
            "at_ms": sample.at_ms,
            "series": sample.readings.series.id,
            "data": _data(sample, self._prefixes.get(sample.readings.series)),
        }


class _PrefixCache:
    """The JSON text of each series up to its value, made once for every shape."""

    LIMIT = 4096

    def __init__(self) -> None:
        self._by_shape: dict[int, list[str]] = {}

    def get(self, shape: SeriesSet) -> list[str]:
        prefixes = self._by_shape.get(shape.id)
        if prefixes is None:
            if len(self._by_shape) >= self.LIMIT:
                self._by_shape.clear()
            prefixes = [_prefix(series) for series in shape.series]
            self._by_shape[shape.id] = prefixes
        return prefixes


def _prefix(series: Series) -> str:
    fields = [series.name, dict(series.labels), series.kind.value]
    return json.dumps(fields, ensure_ascii=False)[:-1] + ", "


def _data(sample: Sample, prefixes: list[str]) -> str:
    """Return a JSON list of [name, labels, kind, value]. NaN and infinity are null."""
    values = sample.readings.values
    entries = [
        f"{prefix}{value!r}]" if isfinite(value) else f"{prefix}null]"
        for prefix, value in zip(prefixes, values, strict=True)
    ]
    return "[" + ",".join(entries) + "]"
