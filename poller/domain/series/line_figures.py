"""Figures of a line over its range, and the stretches of it that are known."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np

from poller.domain.metrics.counters import GAP_INTERVALS
from poller.domain.series import traffic
from poller.domain.series.series_line import Points, PointVerdict, SeriesLine

#: Points that are further apart than so many of their spans have a gap between them.
APART = GAP_INTERVALS
_MARKED = (PointVerdict.RESET, PointVerdict.IMPLAUSIBLE)


@dataclass(frozen=True, slots=True)
class LineFigures:
    """The figures of a line: rates a second of a counter, values of a gauge; None: unknown."""

    last: float | None
    mean: float | None
    lowest: float | None
    highest: float | None
    p95: float | None  # of the points, by the nearest rank
    total: float | None  # growth of a counter


def of_line(line: SeriesLine) -> LineFigures:
    """Return the figures of a line."""
    points = line.points
    has_value = np.isfinite(points.value) & (points.known_ms + points.averaged_ms > 0)
    values = points.value[has_value]
    return LineFigures(
        last=line.last(),
        mean=line.mean(),
        lowest=line.lowest(),
        highest=line.highest(),
        p95=traffic.percentile(values, traffic.PERCENTILE) if len(values) else None,
        total=line.total(),
    )


def highest_of_slices(line: SeriesLine, start_ms: int, slice_ms: int, slices: int) -> SeriesLine:
    """Return a line with one point for each slice of a range: the highest value that is known.

    A slice without a known value has none. Resets and impossible values stay.
    """
    points = line.points
    place = (points.at_ms - start_ms) // slice_ms
    is_inside = (place >= 0) & (place < slices)
    is_known = is_inside & np.isfinite(points.high) & (points.known_ms > 0)
    high = np.full(slices, -np.inf)
    np.maximum.at(high, place[is_known], points.high[is_known])
    known_ms = np.zeros(slices, np.int64)
    np.add.at(known_ms, place[is_known], points.known_ms[is_known])
    value = np.where(known_ms > 0, high, np.nan)
    verdicts = [PointVerdict.OK if known else PointVerdict.UNKNOWN for known in known_ms > 0]
    for at, verdict in zip(place.tolist(), points.verdicts, strict=True):
        if verdict in _MARKED and 0 <= at < slices:
            verdicts[at] = verdict
    sliced = Points(
        at_ms=start_ms + np.arange(slices, dtype=np.int64) * slice_ms,
        span_ms=np.full(slices, slice_ms, np.int64),
        value=value,
        low=value,
        high=value,
        known_ms=known_ms,
        averaged_ms=np.zeros(slices, np.int64),
        verdicts=verdicts,
    )
    return replace(line, points=sliced)


def known_runs(points: Points) -> Iterator[tuple[int, int]]:
    """Yield the first and the end of each run of points that follow each other and are known.

    A point that has only an average over missing polls is a part of the gap.
    """
    is_known = (np.isfinite(points.value) & (points.known_ms > 0)).tolist()
    is_apart = np.diff(points.at_ms, prepend=points.at_ms[:1]) > APART * points.span_ms
    first: int | None = None
    for place, (known, apart) in enumerate(zip(is_known, is_apart.tolist(), strict=True)):
        if first is not None and (apart or not known):
            yield first, place
            first = None
        if known and first is None:
            first = place
    if first is not None:
        yield first, len(is_known)
