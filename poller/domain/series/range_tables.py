"""Roll-ups of consecutive days joined to one table of a range, made coarser on the way, then to
lines. Only some buckets of a long range are in memory before they are made coarser.
"""

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
#: Buckets of a series that are in memory before they are made coarser, about.
_WINDOW = 2_048


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


class _Tables:
    """The series of all kinds in the same buckets."""

    def __init__(self, buckets: Buckets) -> None:
        self.buckets = buckets
        self.counters = _Rows(_COUNTER, buckets.count)
        self.gauges = _Rows(_GAUGE, buckets.count)
        self.states = _Rows(_STATE, buckets.count)

    def rollup(self) -> Rollup:
        """All rows as one roll-up, without references."""
        values = np.array([value for _, value in self.states.rows], np.float64)
        return Rollup(
            self.buckets,
            CounterTable((), *(self.counters.column(name) for name in _COUNTER)),
            GaugeTable((), *(self.gauges.column(name) for name in _GAUGE)),
            StateTable((), values, self.states.column("lasted_ms")),
        )

    def take(self, finer: _Tables, factor: int) -> None:
        """Take over all rows of finer tables, `factor` of their buckets as one."""
        joined = finer.rollup()
        coarse = rollup.coarser(joined, factor) if factor > 1 else joined
        place = _place(coarse.buckets, self.buckets)
        if place is None:
            return
        for rows, more, table in (
            (self.counters, finer.counters, coarse.counters),
            (self.gauges, finer.gauges, coarse.gauges),
            (self.states, finer.states, coarse.states),
        ):
            for row, (key, value) in enumerate(more.rows):
                rows.add(key, value, more.series[key], table, row, place)


class RangeTables:
    """Joins roll-ups of one step, in buckets that each hold `factor` of it.

    Series are joined by identity, whatever their shape.
    """

    def __init__(self, buckets: Buckets, by: Identity, selects: Selects, factor: int = 1) -> None:
        self.buckets = buckets
        self._by = by
        self._selects = selects
        self._factor = factor
        self._range = _Tables(buckets.coarser(factor))
        self._window = _Tables(self._window_at(0))
        #: Series of roll-ups; None: it is not selected, or not known. Days have the same ones.
        self._chosen: dict[SeriesRef, tuple[Key, Series] | None] = {}

    def add(self, part: Rollup, shapes: Shapes) -> None:
        """Take over a roll-up, the parts in the order of time. Series of unknown shapes are left
        out.
        """
        place = _place(part.buckets, self.buckets)
        if place is None:
            return
        for first in range(self._first_of_window(place.goal.start), place.goal.stop, self._length):
            self._enter(first)
            self._add(part, shapes)

    def lines(self) -> Iterator[SeriesLine]:
        """Yield a line for each series."""
        self._range.take(self._window, self._factor)
        self._window = _Tables(self._window_at(0))
        joined = self._range.rollup()
        for group, rows, points in (
            (Group.COUNTER, self._range.counters, _counter_points),
            (Group.GAUGE, self._range.gauges, _gauge_points),
        ):
            for row, (key, _) in enumerate(rows.rows):
                yield SeriesLine(rows.series[key], key, group, points(joined, row))
        states = self._range.states
        rows_of: dict[Key, list[int]] = {}
        for row, (key, _) in enumerate(states.rows):
            rows_of.setdefault(key, []).append(row)
        for key, found in rows_of.items():
            points_of = _state_points(joined, np.array(found))
            yield SeriesLine(states.series[key], key, Group.STATE, points_of)

    @property
    def _length(self) -> int:
        """Buckets of a window: whole coarse ones."""
        return max(1, _WINDOW // self._factor) * self._factor

    def _first_of_window(self, bucket: int) -> int:
        return bucket // self._length * self._length

    def _window_at(self, first: int) -> Buckets:
        step_ms = self.buckets.step_ms
        count = min(self._length, self.buckets.count - first)
        return Buckets(self.buckets.start_ms + first * step_ms, step_ms, count)

    def _enter(self, first: int) -> None:
        """Begin the window at this bucket, if it is not the one of before."""
        wanted = self._window_at(first)
        if wanted != self._window.buckets:
            self._range.take(self._window, self._factor)
            self._window = _Tables(wanted)

    def _add(self, part: Rollup, shapes: Shapes) -> None:
        """Take over what a roll-up has of the window."""
        place = _place(part.buckets, self._window.buckets)
        if place is None:
            return
        window = self._window
        for rows, table in ((window.counters, part.counters), (window.gauges, part.gauges)):
            for row, ref in enumerate(table.refs):
                self._take(rows, ref, shapes, table, row, place)
        for row, ref in enumerate(part.states.refs):
            value = float(part.states.values[row])
            self._take(window.states, ref, shapes, part.states, row, place, value)

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


def _place(part: Buckets, whole: Buckets) -> _Place | None:
    """Where buckets lie in others of the same length; None: nowhere."""
    offset = (part.start_ms - whole.start_ms) // whole.step_ms
    first, end = max(0, offset), min(whole.count, offset + part.count)
    if first >= end:
        return None
    return _Place(slice(first - offset, end - offset), slice(first, end))


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
