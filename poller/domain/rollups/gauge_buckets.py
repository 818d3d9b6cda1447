"""Samples of gauges and states to the columns of a roll-up.

A sample holds until the next one, but not for longer than 2.5 intervals: then the value is unknown.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from poller.domain.metrics.counters import GAP_INTERVALS
from poller.domain.rollups import bucket_edges
from poller.domain.rollups.bucket_edges import CutSpans
from poller.domain.rollups.rollup import Buckets, GaugeTable, StateTable
from poller.domain.rollups.sample_columns import Floats, Integers, SampleColumns, SeriesRef

#: Values of one state that are kept apart. A series with more is no state: the rest is left out.
MAXIMUM_STATES = 32


def roll_up_gauges(samples: SampleColumns, buckets: Buckets, interval_ms: int) -> GaugeTable:
    """Return the roll-up of gauges."""
    size = (len(samples.refs), buckets.count)
    table = GaugeTable(samples.refs, np.zeros(size, np.int64), *(np.zeros(size) for _ in range(4)))
    for rows, polls in _groups(samples.values):
        held = _Held(samples.at_ms[polls], buckets, interval_ms)
        _fill(table, rows, held, samples.values[np.ix_(rows, polls)])
    return table


def roll_up_states(samples: SampleColumns, buckets: Buckets, interval_ms: int) -> StateTable:
    """Return the time of each value of each state."""
    refs: list[SeriesRef] = []
    values: list[float] = []
    lasted_ms = [np.zeros((0, buckets.count), np.int64)]
    for rows, polls in _groups(samples.values):
        held = _Held(samples.at_ms[polls], buckets, interval_ms)
        for row in rows:
            of_row = samples.values[row, polls]
            found = np.unique(of_row)[:MAXIMUM_STATES]
            refs.extend([samples.refs[row]] * len(found))
            values.extend(found.tolist())
            lasted_ms.append(held.cut.lengths(held.spread(of_row == found[:, None])))
    table = StateTable(refs, np.array(values, np.float64), np.concatenate(lasted_ms))
    return _without_silent_rows(table)


def _without_silent_rows(table: StateTable) -> StateTable:
    """Leave out values that lasted for no time of these buckets."""
    kept = np.flatnonzero(table.lasted_ms.any(axis=1)).tolist()
    return StateTable([table.refs[row] for row in kept], table.values[kept], table.lasted_ms[kept])


class _Held:
    """The spans over which samples hold, and those after them in which nothing is known."""

    def __init__(self, at_ms: Integers, buckets: Buckets, interval_ms: int) -> None:
        longest_ms = int(GAP_INTERVALS * interval_ms) or buckets.step_ms
        end_ms = np.minimum(np.append(at_ms[1:], at_ms[-1] + longest_ms), at_ms + longest_ms)
        instants = np.unique(np.concatenate((at_ms, end_ms)))
        #: The sample that holds over each span; the spans without one are unknown.
        self.sample = np.searchsorted(at_ms, instants[:-1], side="right") - 1
        self.is_held = instants[:-1] < end_ms[self.sample]
        self.cut: CutSpans = bucket_edges.cut(instants, buckets)

    def spread(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return the flags of samples as flags of spans."""
        return np.asarray(flags[:, self.sample] & self.is_held)


def _groups(values: Floats) -> Iterator[tuple[Integers, Integers]]:
    """Yield series with finite samples in the same polls, and those polls."""
    finite = np.isfinite(values)
    groups: dict[bytes, list[int]] = {}
    for row, flags in enumerate(finite):
        groups.setdefault(flags.tobytes(), []).append(row)
    for rows in groups.values():
        polls = np.flatnonzero(finite[rows[0]])
        if len(polls):
            yield np.array(rows), polls


def _fill(table: GaugeTable, rows: Integers, held: _Held, values: Floats) -> None:
    known_ms = held.cut.lengths(held.is_held[None, :])
    table.known_ms[rows] = known_ms
    is_known = known_ms[0] > 0
    is_constant = (values == values[:, :1]).all(axis=1)
    constant = np.where(is_known, values[is_constant][:, :1], 0.0)
    for stat in (table.mean, table.low, table.high, table.last):
        stat[rows[is_constant]] = constant
    moving = ~is_constant
    if moving.any():
        _fill_moving(table, rows[moving], held, values[moving])


def _fill_moving(table: GaugeTable, rows: Integers, held: _Held, values: Floats) -> None:
    """Fill in the gauges that have more than one value."""
    cut = held.cut
    of_spans = values[:, held.sample]
    known_ms = table.known_ms[rows]
    is_known = known_ms > 0
    low = np.where(is_known, cut.least(np.where(held.is_held, of_spans, np.inf)), 0.0)
    high = np.where(is_known, -cut.least(np.where(held.is_held, -of_spans, np.inf)), 0.0)
    with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
        sums = cut.sums(np.where(held.is_held, of_spans * cut.length_ms, 0.0))
        mean = np.nan_to_num(sums / known_ms, posinf=0.0, neginf=0.0)
    table.low[rows] = low
    table.high[rows] = high
    table.mean[rows] = np.clip(mean, low, high)
    table.last[rows] = np.where(is_known, _last(held, of_spans), 0.0)


def _last(held: _Held, of_spans: Floats) -> Floats:
    """Return the last value that holds in each bucket, where one does."""
    places = np.where(held.is_held, np.arange(len(held.is_held)), -1)
    newest_held = np.maximum.accumulate(places)
    last_span = np.maximum(held.cut.end - 1, 0)
    return np.asarray(of_spans[:, np.maximum(newest_held[last_span], 0)])
