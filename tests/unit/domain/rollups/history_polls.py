"""Polls for the tests of history: one interface in several shapes, and what happens to it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np

from poller.domain.history.block import Segment
from poller.domain.metrics.rates import Poll
from poller.domain.metrics.reading import Kind, ReadingSet, Series, SeriesSet
from poller.domain.rollups.sample_columns import ShapedPolls

MINUTE = 60_000
HOUR = 60 * MINUTE
DAY = 24 * HOUR
#: 2026-10-01 00:00 UTC.
START = 1_790_812_800_000


def series(name: str, kind: Kind = Kind.GAUGE, width: int = 0, index: int = 1) -> Series:
    """Return a series of the interface `ge0`."""
    labels = (("ifIndex", str(index)), ("ifName", "ge0"))
    return Series(name, labels, kind, width)


def shaped(polls: Iterable[Poll]) -> list[ShapedPolls]:
    """Return polls, oldest first, by shape and column."""
    shapes: dict[int, SeriesSet] = {}
    by_shape: dict[int, list[tuple[int, Sequence[float]]]] = {}
    for at_ms, readings in polls:
        shapes[readings.series.id] = readings.series
        by_shape.setdefault(readings.series.id, []).append((at_ms, readings.values))

    parts = []
    for shape_id, rows in by_shape.items():
        instants = np.array([at_ms for at_ms, _ in rows], np.int64)
        values = np.array([row for _, row in rows], np.float64).T
        parts.append(ShapedPolls(shapes[shape_id], Segment(shape_id, instants, values)))
    return parts


def one_series(
    of: Series, samples: Iterable[tuple[int, float]], uptime: bool = False
) -> list[Poll]:
    """Return polls with one series and, if asked for, an uptime that goes on."""
    up = Series("sysUpTime", (), Kind.GAUGE)
    shape = SeriesSet((of, up)) if uptime else SeriesSet((of,))
    polls = []
    for at_ms, value in samples:
        values = [value, 8_640_000 + (at_ms - START) / 10] if uptime else [value]
        polls.append((at_ms, ReadingSet(shape, values)))
    return polls
