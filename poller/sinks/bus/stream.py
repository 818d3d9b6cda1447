"""The `stream` sink: polls as entries of one bounded Redis stream, for any program to follow.

`XREAD BLOCK 0 STREAMS poller:readings $` gives, per poll: target, device, collector, at_ms, series
(the series set's id) and data: a JSON list of [name, labels, kind, value]. A sink of another name
has the stream `poller:readings:<name>`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import redis

from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.bus.poll_json import PollJson
from poller.state.redis_client import store_errors


class StreamSink:
    name: ClassVar[str] = "stream"
    api_version: ClassVar[int] = API_VERSION

    def __init__(self, stores: Stores) -> None:
        self._redis: redis.Redis = stores.redis
        # Two sinks of this kind have two streams.
        other = "" if stores.name in ("", self.name) else f":{stores.name}"
        self._key = f"{stores.settings.key_prefix}readings{other}"
        self._length: int = stores.settings.stream_length
        self._json = PollJson()

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
            "data": self._json.data(sample),
        }
