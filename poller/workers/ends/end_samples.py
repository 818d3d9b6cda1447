"""Ends of series as samples for the sinks."""

from __future__ import annotations

from collections.abc import Iterable

from poller.domain.metrics.series_ends import SeriesEnd
from poller.metering import process_metrics
from poller.sinks.api import Sample


def end_samples(ends: Iterable[SeriesEnd]) -> list[Sample]:
    """Return ends as samples for the sinks, and count their series."""
    samples = []
    for end in ends:
        samples.append(Sample.end_of(end.target, end.at_ms, end.shape))
        process_metrics.series_ends.add(end.reason.value, by=len(end.shape))
    return samples
