"""Raw polls to lines: one point a poll. Rates are those of the verdict engine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from poller.domain.metrics.reading import SeriesSet
from poller.domain.metrics.series_identity import Identity
from poller.domain.rollups import verdict_columns
from poller.domain.rollups.counter_samples import counter_samples
from poller.domain.rollups.sample_columns import (
    Floats,
    Group,
    Integers,
    LinedUpPolls,
    SampleColumns,
    SeriesRef,
    ShapedPolls,
    shape_plan,
)
from poller.domain.rollups.verdict_columns import GAP, WRAP, Steps
from poller.domain.series.series_line import Points, PointVerdict, Selects, SeriesLine

_VERDICTS = {code: PointVerdict(verdict.value) for verdict, code in verdict_columns.CODES.items()}


class RawReader:
    """Makes the lines of polls: those in [start, end), and the one before them."""

    def __init__(
        self, polls: Sequence[ShapedPolls], by: Identity, interval_ms: int, selects: Selects
    ) -> None:
        self._shapes: Mapping[int, SeriesSet] = {each.shape.id: each.shape for each in polls}
        self._by = by
        self._interval_ms = interval_ms
        self._selects = selects
        self._polls = LinedUpPolls(polls, by, selects)

    def lines(self, start_ms: int, end_ms: int) -> Iterator[SeriesLine]:
        """Yield the line of each selected series that has a point."""
        if not len(self._polls.at_ms):
            return
        samples = counter_samples(self._polls)
        for steps in verdict_columns.judge(samples, self._interval_ms):
            inside = _inside(steps.at_ms[1:], start_ms, end_ms)
            for row, counter in enumerate(steps.counters):
                ref = samples.refs[counter]
                if len(inside) and self._is_selected(ref):
                    yield self._line(ref, Group.COUNTER, _rates(steps, row, inside))
        for group in (Group.GAUGE, Group.STATE):
            columns = self._polls.columns(group)
            for row, ref in enumerate(columns.refs):
                if self._is_selected(ref):
                    points = self._values(columns, row, start_ms, end_ms)
                    if len(points.at_ms):
                        yield self._line(ref, group, points)

    def _is_selected(self, ref: SeriesRef) -> bool:
        return self._selects(self._shapes[ref.shape_id].series[ref.index])

    def _line(self, ref: SeriesRef, group: Group, points: Points) -> SeriesLine:
        shape = self._shapes[ref.shape_id]
        key = shape_plan(shape, self._by).keys[ref.index]
        return SeriesLine(shape.series[ref.index], key, group, points)

    def _values(self, columns: SampleColumns, row: int, start_ms: int, end_ms: int) -> Points:
        """The samples of a gauge. A sample stands for the time since the one before."""
        is_value = np.isfinite(columns.values[row])
        at_ms, values = columns.at_ms[is_value], columns.values[row][is_value]
        span_ms = np.minimum(np.diff(at_ms, prepend=at_ms[:1]), self._interval_ms or 2**62)
        inside = _inside(at_ms, start_ms, end_ms)
        span_ms = np.maximum(span_ms[inside], 1)
        chosen = values[inside]
        nothing = np.zeros(len(inside), np.int64)
        verdicts = [PointVerdict.OK] * len(inside)
        return Points(at_ms[inside], span_ms, chosen, chosen, chosen, span_ms, nothing, verdicts)


def _inside(at_ms: Integers, start_ms: int, end_ms: int) -> Integers:
    return np.flatnonzero((at_ms >= start_ms) & (at_ms < end_ms))


def _rates(steps: Steps, row: int, inside: Integers) -> Points:
    """The rates of one counter; a step that has none is NaN."""
    span_ms = np.diff(steps.at_ms)[inside]
    codes = steps.codes[row, inside]
    per_second: Floats = np.full(len(inside), np.nan)
    np.divide(steps.growth[row, inside] * 1000, span_ms, out=per_second, where=(codes <= GAP))
    known_ms = np.where(codes <= WRAP, span_ms, 0)
    averaged_ms = np.where(codes == GAP, span_ms, 0)
    verdicts = [_VERDICTS[code] for code in codes.tolist()]
    at_ms = steps.at_ms[1:][inside]
    return Points(
        at_ms, span_ms, per_second, per_second, per_second, known_ms, averaged_ms, verdicts
    )
