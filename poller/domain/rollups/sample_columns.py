"""The series of a target lined up by identity: one row a series, one column a poll.

Two shapes of a target may number its interfaces differently, or lack some of them. A sample that a
poll lacks is NaN, which every reader skips like a value that is no number.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from poller.domain.history.block import Block, Segment
from poller.domain.metrics.counter_evidence import EvidenceColumns, EvidenceFinder
from poller.domain.metrics.reading import Kind, Series, SeriesSet
from poller.domain.metrics.series_identity import Identity, Key, series_keys
from poller.domain.rollups import state_series

Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


class ShapedPolls(NamedTuple):
    """Polls of one shape."""

    shape: SeriesSet
    segment: Segment


def joined(blocks: Iterable[Block], shapes: Mapping[int, SeriesSet]) -> list[ShapedPolls]:
    """Return the polls of blocks by shape. Those of a shape that is not known are left out."""
    by_shape: dict[int, list[Segment]] = {}
    for block in blocks:
        for segment in block.segments:
            if segment.shape_id in shapes:
                by_shape.setdefault(segment.shape_id, []).append(segment)
    return [
        ShapedPolls(shapes[shape_id], _one(segments)) for shape_id, segments in by_shape.items()
    ]


def _one(segments: Sequence[Segment]) -> Segment:
    if len(segments) == 1:
        return segments[0]
    ordered = sorted(segments, key=lambda segment: int(segment.at_ms[0]))
    at_ms = np.concatenate([segment.at_ms for segment in ordered])
    values = np.concatenate([segment.values for segment in ordered], axis=1)
    return Segment(ordered[0].shape_id, at_ms, values)


@dataclass(frozen=True, slots=True)
class SeriesRef:
    """The place of a series: the newest shape that has it, and its index there."""

    shape_id: int
    index: int


class Group(enum.Enum):
    """How a series is rolled up."""

    COUNTER = "counter"
    GAUGE = "gauge"
    STATE = "state"


@dataclass(frozen=True, slots=True)
class SampleColumns:
    """The series of one group. `values` has a row for each of `refs` and a column for each poll."""

    at_ms: Integers
    refs: Sequence[SeriesRef]
    values: Floats


class LinedUpPolls:
    """Polls of a target, oldest first, with their series lined up. At most one poll an instant.

    With `selects` only the selected series are rolled up. The others still serve as evidence.
    """

    def __init__(
        self,
        polls: Iterable[ShapedPolls],
        by: Identity = Identity.IF_NAME,
        selects: Callable[[Series], bool] | None = None,
    ) -> None:
        self._selects = selects
        parts = [part for part in polls if part.segment.polls]
        # The newest shape comes last: its references and widths win.
        self._parts = sorted(parts, key=lambda part: int(part.segment.at_ms.max()))
        self._plans = [shape_plan(part.shape, by) for part in self._parts]
        instants = [part.segment.at_ms for part in self._parts]
        joined = np.concatenate(instants) if instants else np.empty(0, np.int64)
        self.at_ms, self._order = np.unique(joined, return_index=True)

    @property
    def shapes(self) -> int:
        """The number of parts, each of one shape."""
        return len(self._parts)

    def series(self, group: Group) -> dict[Key, SeriesRef]:
        """Return the series of a group, and where each is described."""
        found: dict[Key, SeriesRef] = {}
        for plan in self._plans:
            found.update(self._selected(plan, plan.refs(group)))
        return found

    def _selected(self, plan: ShapePlan, refs: dict[Key, SeriesRef]) -> dict[Key, SeriesRef]:
        if self._selects is None:
            return refs
        series = plan.shape.series
        return {key: ref for key, ref in refs.items() if self._selects(series[ref.index])}

    def columns(self, group: Group) -> SampleColumns:
        """Return the samples of all series of a group."""
        found = self.series(group)
        return SampleColumns(self.at_ms, list(found.values()), self.rows(list(found)))

    def rows(self, keys: Sequence[Key]) -> Floats:
        """Return the samples of these series; a series that a poll lacks is NaN there."""
        return self._joined([plan.indexes(keys) for plan in self._plans])

    def evidence(self, keys: Sequence[Key]) -> Sequence[Sequence[EvidenceColumns | None]]:
        """Return the evidence of these counters, for each shape."""
        return [plan.evidence_of(keys) for plan in self._plans]

    def picked(self, indexes: Sequence[Sequence[int | None]]) -> Floats:
        """Return rows chosen by their index in each shape; None: NaN in polls of that shape."""
        return self._joined([[-1 if at is None else at for at in row] for row in indexes])

    def spread(self, constants: Sequence[Sequence[float]]) -> Floats:
        """Return rows of numbers that each shape has for all its polls."""
        chosen = []
        for part, row in zip(self._parts, constants, strict=True):
            column = np.array(row, np.float64)[:, None]
            chosen.append(np.broadcast_to(column, (len(row), len(part.segment.at_ms))))
        return np.concatenate(chosen, axis=1)[:, self._order]

    def widths(self, keys: Sequence[Key]) -> Integers:
        """Return the width of each counter: that of the newest shape that knows it."""
        widths = np.zeros(len(keys), np.int64)
        for plan in self._plans:
            of_shape = np.array(plan.widths_of(keys), np.int64)
            widths = np.where(of_shape > 0, of_shape, widths)
        return widths

    def _joined(self, indexes: Sequence[Sequence[int]]) -> Floats:
        chosen = []
        for part, row in zip(self._parts, indexes, strict=True):
            index = np.array(row, np.int64)
            samples = part.segment.values[index]
            samples[index < 0] = np.nan
            chosen.append(samples)
        if len(chosen) == 1 and len(self._order) == chosen[0].shape[1]:
            return chosen[0]
        return np.concatenate(chosen, axis=1)[:, self._order]


class ShapePlan:
    """The series of one shape by group: computed once for all days of that shape."""

    def __init__(self, shape: SeriesSet, by: Identity) -> None:
        self.shape = shape
        self.keys = series_keys(shape, by)
        finder = EvidenceFinder(shape)
        self._refs: dict[Group, dict[Key, SeriesRef]] = {group: {} for group in Group}
        self._evidence: dict[Key, EvidenceColumns] = {}
        self._index = {key: index for index, key in enumerate(self.keys)}
        for index, series in enumerate(shape.series):
            group = group_of(series)
            if group is not None:
                self._refs[group][self.keys[index]] = SeriesRef(shape.id, index)
            if group is Group.COUNTER:
                self._evidence[self.keys[index]] = finder.columns(index, series)

    def refs(self, group: Group) -> dict[Key, SeriesRef]:
        return self._refs[group]

    def indexes(self, keys: Sequence[Key]) -> list[int]:
        """Return the index of each series in this shape, or -1."""
        return [self._index.get(key, -1) for key in keys]

    def evidence_of(self, keys: Sequence[Key]) -> list[EvidenceColumns | None]:
        return [self._evidence.get(key) for key in keys]

    def widths_of(self, keys: Sequence[Key]) -> list[int]:
        """Return the width of each series in this shape, or 0."""
        series = self.shape.series
        return [series[at].width if at >= 0 else 0 for at in self.indexes(keys)]


def group_of(series: Series) -> Group | None:
    """Return how a series is rolled up; None: an info, whose labels are in its shape."""
    if series.kind is Kind.COUNTER:
        return Group.COUNTER
    if series.kind is Kind.INFO:
        return None
    return Group.STATE if state_series.is_state(series.name) else Group.GAUGE


@lru_cache(maxsize=256)
def shape_plan(shape: SeriesSet, by: Identity) -> ShapePlan:
    """Return the series of a shape by group."""
    return ShapePlan(shape, by)
