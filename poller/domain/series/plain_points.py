"""Points of chosen series as plain rows, which SQL can read."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import UTC, datetime
from fnmatch import fnmatchcase
from typing import NamedTuple

import numpy as np

from poller.domain.metrics.reading import Kind, Labels, Series
from poller.domain.series.series_line import Points, SeriesLine


class MetricNames:
    """Selects series by the names of their metrics; `*` and `?` are wildcards, case counts."""

    def __init__(self, patterns: Iterable[str]) -> None:
        self._patterns = tuple(patterns)
        self._known: dict[str, bool] = {}

    def __call__(self, series: Series) -> bool:
        """Whether a series is selected. An info has no value, so it never is."""
        if series.kind is Kind.INFO:
            return False
        selected = self._known.get(series.name)
        if selected is None:
            selected = any(fnmatchcase(series.name, pattern) for pattern in self._patterns)
            self._known[series.name] = selected
        return selected


class PlainPoint(NamedTuple):
    """A bucket of a series, from its start on."""

    at: datetime
    value: float  # of a counter growth a second, of a gauge the mean, of a state the longest one
    low: float
    high: float
    known_ms: int
    averaged_ms: int


class PlainSeries(NamedTuple):
    """A series, the labels that it is known by, and its points. Texts are fit for SQL."""

    metric: str
    kind: str
    known_by: dict[str, str]
    labels: dict[str, str]
    points: Sequence[PlainPoint]


def plain_series(line: SeriesLine) -> PlainSeries:
    """Return a line as plain points. A bucket without any value has none."""
    return PlainSeries(
        metric=_fit(line.series.name),
        kind=line.group.value,
        known_by=_fit_labels(line.known_by),
        labels=_fit_labels(line.series.labels),
        points=_points(line.points),
    )


def _points(points: Points) -> list[PlainPoint]:
    has_value = np.flatnonzero(np.isfinite(points.value))
    columns = (
        points.value,
        points.low,
        points.high,
        points.known_ms,
        points.averaged_ms,
    )
    instants = [
        datetime.fromtimestamp(at_ms / 1000, UTC) for at_ms in points.at_ms[has_value].tolist()
    ]
    chosen = [column[has_value].tolist() for column in columns]
    return [PlainPoint(*row) for row in zip(instants, *chosen, strict=True)]


def _fit_labels(labels: Labels) -> dict[str, str]:
    return {_fit(name): _fit(value) for name, value in labels}


def _fit(text: str) -> str:
    """Return a text without what PostgreSQL cannot store: NUL, and halves of characters."""
    return text.replace("\0", "\ufffd").encode("utf-8", "replace").decode()
