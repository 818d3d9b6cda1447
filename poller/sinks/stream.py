"""The `stream` sink: polls as entries of one bounded Redis stream, for anybody to follow.

`XREAD BLOCK 0 STREAMS poller:readings $` gives, per poll: target, device, collector, at_ms, series (the
series set's id) and data: a JSON list of [name, labels, kind, value].
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from math import isfinite
from typing import Any, ClassVar

import redis

from poller.domain.metrics.reading import SeriesSet
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.state.redis_client import store_errors


class StreamSink:
    name: ClassVar[str] = "stream"
    api_version: ClassVar[int] = API_VERSION

    def __init__(self, stores: Stores) -> None:
        self._redis: redis.Redis = stores.redis
        self._key = f"{stores.settings.key_prefix}readings"
        self._length: int = stores.settings.stream_length
        self._heads = _Heads()

    def write(self, samples: Sequence[Sample]) -> None:
        """One pipeline per batch; the oldest entries leave when the stream is full."""
        pipe = self._redis.pipeline(transaction=False)
        for sample in samples:
            pipe.xadd(self._key, self._fields(sample), maxlen=self._length, approximate=True)
        with store_errors(self._redis):
            pipe.execute()

    def close(self) -> None:
        """Nothing of its own to close."""

    def _fields(self, sample: Sample) -> dict[Any, Any]:
        return {
            "target": sample.target.id,
            "device": sample.target.device,
            "collector": sample.target.collector,
            "at_ms": sample.at_ms,
            "series": sample.readings.series.id,
            "data": _data(sample, self._heads.of(sample.readings.series)),
        }


class _Heads:
    """The JSON text of each series up to its value, made once for every shape."""

    LIMIT = 4096

    def __init__(self) -> None:
        self._known: dict[int, list[str]] = {}

    def of(self, shape: SeriesSet) -> list[str]:
        heads = self._known.get(shape.id)
        if heads is None:
            if len(self._known) >= self.LIMIT:
                self._known.clear()
            heads = self._known[shape.id] = [
                json.dumps([s.name, dict(s.labels), s.kind.value], ensure_ascii=False)[:-1] + ", "
                for s in shape.series
            ]
        return heads


def _data(sample: Sample, heads: list[str]) -> str:
    """A JSON list of [name, labels, kind, value]; what JSON cannot say (NaN, infinity) is null."""
    values = sample.readings.values
    return (
        "["
        + ",".join(
            f"{h}{v!r}]" if isfinite(v) else f"{h}null]" for h, v in zip(heads, values, strict=True)
        )
        + "]"
    )
