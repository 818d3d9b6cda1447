"""Samples that a sink leaves out for good: counted with the first series and the reason."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from poller.domain.inventory import duration
from poller.observability import logs
from poller.sinks import outside_series
from poller.sinks.api import Sample
from poller.sinks.outside_series import OutsideSeries, SeriesMapper
from poller.sinks.remote_write.outgoing_poll import Piece

log = logs.get(__name__)

#: A reason is logged again after this time at the earliest.
_LOG_S = 60.0


class DroppedSamples:
    """Counts what is dropped. `count` is `Stores.dropped` of the sink."""

    def __init__(self, count: Callable[[int, str], None], mapper: SeriesMapper, sink: str) -> None:
        self._count = count
        self._mapper = mapper
        self._sink = sink
        self._logged_mono = -_LOG_S

    def refused(self, piece: Piece, reason: str) -> None:
        """Count the samples of a piece that the store refuses."""
        sample = piece.poll.sample
        mapped = self._mapper.outside(sample.target, sample.readings.series).series
        self._add(mapped[piece.first : piece.end], f"the store refuses it: {reason}")

    def doubled(self, sample: Sample) -> None:
        """Count the series of a poll that equal an earlier one in the store."""
        mapped = self._mapper.outside(sample.target, sample.readings.series).doubled
        self._add(mapped, "another series of the poll has the same name and labels in the store")

    def too_old(self, sample: Sample, now_ms: int) -> None:
        """Count a poll beyond the age limit."""
        mapped = self._mapper.outside(sample.target, sample.readings.series).series
        age = duration.rounded_text(now_ms - sample.at_ms)
        self._add(mapped, f"it is older than max_age: {age}")

    def not_written(self, samples: int, sent: int) -> None:
        """Count samples that a store with remote write 2.0 took without writing them."""
        if samples:
            self._say(samples, f"the store says that it wrote {sent - samples} of {sent} samples")

    def _add(self, series: Sequence[OutsideSeries], reason: str) -> None:
        if series:
            more = f" and {len(series) - 1} more" if len(series) > 1 else ""
            text = outside_series.series_text(series[0])
            self._say(len(series), f"{text}{more}: {reason}")

    def _say(self, samples: int, reason: str) -> None:
        self._count(samples, reason)
        now_mono = time.monotonic()
        if now_mono >= self._logged_mono + _LOG_S:
            self._logged_mono = now_mono
            log.warning("samples_dropped", sink=self._sink, samples=samples, reason=reason)
