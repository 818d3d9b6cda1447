"""Roll-ups of consecutive days joined to one table of a range, then made coarser, then to lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from poller.domain.metrics.reading import Series, SeriesSet
from poller.domain.metrics.series_identity import Identity, Key
from poller.domain.rollups import rollup
from poller.domain.rollups.rollup import Buckets, CounterTable, GaugeTable, Rollup, StateTable
from poller.domain.rollups.sample_columns import Floats, Group, Integers, SeriesRef, shape_plan
from poller.domain.series.series_line import Points, PointVerdict, Selects, SeriesLine

Shapes = Mapping[int, SeriesSet]
_Column = NDArray[Any]
_COUNTER = ("known_ms", "gap_ms", "total", "low", "high", "resets")
_GAUGE = ("known_ms", "mean", "low", "high", "last")
_STATE = ("lasted_ms",)
#: Verdicts of a bucket; the first that applies counts.
_VERDICTS = (PointVerdict.RESET, PointVerdict.UNKNOWN, PointVerdict.GAP, PointVerdict.OK)
_WHOLE = frozenset({"known_ms", "gap_ms", "resets", "lasted_ms"})


@dataclass(frozen=True, slots=True)
class _Place:
    """Which columns of a roll-up go to which columns of the range."""

    source: slice
    goal: slice


class _Rows:
    """The rows of one kind of series: a column of the range for each column of the roll-ups."""

    def __init__(self, names: Iterable[str], count: int) -> None:
        self._names = tuple(names)
        self._count = count
        self.rows: dict[tuple[Key, float], dict[str, _Column]] = {}
        self.series: dict[Key, Series] = {}

    def add(
        self, key: Key, value: float, series: Series, table: object, row: int, at: _Place
    ) -> None:
        """Take over one row of a roll-up's table."""
        columns = self.rows.get((key, value))
        if columns is None:
            columns = {name: self._empty(name) for name in self._names}
            self.rows[key, value] = columns
        self.series[key] = series
        for name, column in columns.items():
            column[at.goal] = getattr(table, name)[row][at.source]

    def column(self, name: str) -> _Column:
        """Return one column of all rows as a table."""
        if not self.rows:
            return np.zeros((0, self._count), np.int64 if name in _WHOLE else np.float64)
        return np.stack([columns[name] for columns in self.rows.values()])

    def _empty(self, name: str) -> _Column:
        return np.zeros(self._count, np.int64 if name in _WHOLE else np.float64)


class RangeTables:
    """Joins roll-ups of one step. Series are joined by identity, whatever their shape."""

    def __init__(self, buckets: Buckets, by: Identity, selects: Selects) -> None:
        self.buckets = buckets
        self._by = by
        self._selects = selects
        self._counters = _Rows(_COUNTER, buckets.count)
        self._gauges = _Rows(_GAUGE, buckets.count)
        self._states = _Rows(_STATE, buckets.count)
        #: Series of roll-ups; None: it is not selected, or not known. Days have the same ones.
        self._chosen: dict[SeriesRef, tuple[Key, Series] | None] = {}

    def add(self, part: Rollup, shapes: Shapes) -> None:
        """Take over a roll-up, the parts in the order of time. Series of unknown shapes are left
        out.
        """
        place = self._place(part.buckets)
        if place is None:
            return
        for rows, table in ((self._counters, part.counters), (self._gauges, part.gauges)):
            for row, ref in enumerate(table.refs):
                self._take(rows, ref, shapes, table, row, place)
        for row, ref in enumerate(part.states.refs):
            value = float(part.states.values[row])
            self._take(self._states, ref, shapes, part.states, row, place, value)

    def lines(self, factor: int = 1) -> Iterator[SeriesLine]:
        """Yield a line for each series, in buckets that each hold `factor` of the range's."""
        joined = Rollup(
            self.buckets, self._counter_table(), self._gauge_table(), self._state_table()
        )
        coarse = rollup.coarser(joined, factor) if factor > 1 else joined
        for row, (key, _) in enumerate(self._counters.rows):
            points = _counter_points(coarse, row)
            yield SeriesLine(self._counters.series[key], key, Group.COUNTER, points)
        for row, (key, _) in enumerate(self._gauges.rows):
            yield SeriesLine(self._gauges.series[key], key, Group.GAUGE, _gauge_points(coarse, row))
        rows_of: dict[Key, list[int]] = {}
        for row, (key, _) in enumerate(self._states.rows):
            rows_of.setdefault(key, []).append(row)
        for key, rows in rows_of.items():
            points = _state_points(coarse, np.array(rows))
            yield SeriesLine(self._states.series[key], key, Group.STATE, points)

    def _place(self, part: Buckets) -> _Place | None:
        offset = (part.start_ms - self.buckets.start_ms) // self.buckets.step_ms
        first, end = max(0, offset), min(self.buckets.count, offset + part.count)
        if first >= end:
            return None
        return _Place(slice(first - offset, end - offset), slice(first, end))

    def _take(
        self,
        rows: _Rows,
        ref: SeriesRef,
        shapes: Shapes,
        table: object,
        row: int,
        place: _Place,
        value: float = 0.0,
    ) -> None:
        if ref not in self._chosen:
            self._chosen[ref] = self._choose(ref, shapes)
        chosen = self._chosen[ref]
        if chosen is not None:
            key, series = chosen
            rows.add(key, value, series, table, row, place)

    def _choose(self, ref: SeriesRef, shapes: Shapes) -> tuple[Key, Series] | None:
        shape = shapes.get(ref.shape_id)
        if shape is None or ref.index >= len(shape):
            return None
        series = shape.series[ref.index]
        if not self._selects(series):
            return None
        return shape_plan(shape, self._by).keys[ref.index], series

    def _counter_table(self) -> CounterTable:
        return CounterTable((), *(self._counters.column(name) for name in _COUNTER))

    def _gauge_table(self) -> GaugeTable:
        return GaugeTable((), *(self._gauges.column(name) for name in _GAUGE))

    def _state_table(self) -> StateTable:
        values = np.array([value for _, value in self._states.rows], np.float64)
        return StateTable((), values, self._states.column("lasted_ms"))


def _counter_points(part: Rollup, row: int) -> Points:
    table = part.counters
    known_ms, averaged_ms = table.known_ms[row], table.gap_ms[row]
    has_rate = known_ms + averaged_ms > 0
    mean = np.full(len(has_rate), np.nan)
    np.divide(table.total[row] * 1000, known_ms + averaged_ms, out=mean, where=has_rate)
    low = np.where(has_rate, table.low[row], np.nan)
    high = np.where(has_rate, table.high[row], np.nan)
    resets = table.resets[row]
    return _points(part.buckets, mean, low, high, known_ms, averaged_ms, resets)


def _gauge_points(part: Rollup, row: int) -> Points:
    table = part.gauges
    known_ms = table.known_ms[row]
    mean, low, high = (
        np.where(known_ms > 0, column[row], np.nan)
        for column in (table.mean, table.low, table.high)
    )
    nothing = np.zeros(len(known_ms), np.int64)
    return _points(part.buckets, mean, low, high, known_ms, nothing, nothing)


def _state_points(part: Rollup, rows: Integers) -> Points:
    """The state that lasted longest in each bucket, and the lowest and highest number of one."""
    lasted_ms = part.states.lasted_ms[rows]
    values = part.states.values[rows]
    known_ms = lasted_ms.sum(axis=0)
    is_known = known_ms > 0
    longest = np.where(is_known, values[lasted_ms.argmax(axis=0)], np.nan)
    low = np.where(lasted_ms > 0, values[:, None], np.inf).min(axis=0)
    high = np.where(lasted_ms > 0, values[:, None], -np.inf).max(axis=0)
    nothing = np.zeros(len(known_ms), np.int64)
    low, high = np.where(is_known, low, np.nan), np.where(is_known, high, np.nan)
    return _points(part.buckets, longest, low, high, known_ms, nothing, nothing)


def _points(
    buckets: Buckets,
    value: Floats,
    low: Floats,
    high: Floats,
    known_ms: Integers,
    averaged_ms: Integers,
    resets: Integers,
) -> Points:
    at_ms = buckets.edges()[:-1]
    span_ms = np.full(len(at_ms), buckets.step_ms, np.int64)
    conditions = [resets > 0, known_ms + averaged_ms == 0, averaged_ms > 0]
    words = [_VERDICTS[place] for place in np.select(conditions, [0, 1, 2], 3).tolist()]
    return Points(at_ms, span_ms, value, low, high, known_ms, averaged_ms, words)
