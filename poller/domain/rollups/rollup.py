"""The roll-up of a target's day: buckets of five minutes or an hour, in tables of columns.

A table has a row for each series and a column for each bucket. A bucket is [start, end) in time.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from poller.domain.rollups.sample_columns import Floats, Integers, SeriesRef

Number = TypeVar("Number", np.float64, np.int64, np.bool_)

DAY_MS = 86_400_000
FIVE_MINUTES_MS = 300_000
HOUR_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Buckets:
    """A row of buckets of one length."""

    start_ms: int
    step_ms: int
    count: int

    @property
    def end_ms(self) -> int:
        return self.start_ms + self.step_ms * self.count

    def edges(self) -> Integers:
        """Return the start of each bucket, and the end of the last one."""
        return self.start_ms + np.arange(self.count + 1, dtype=np.int64) * self.step_ms

    def goes_on_in(self, later: Buckets) -> bool:
        """Whether as many buckets of the same length begin where these end."""
        return later == Buckets(self.end_ms, self.step_ms, self.count)

    def coarser(self, factor: int) -> Buckets:
        """Return buckets that each hold `factor` of these."""
        return Buckets(self.start_ms, self.step_ms * factor, self.count // factor)


def of_day(day_ms: int, step_ms: int) -> Buckets:
    """Return the buckets of a UTC day."""
    return Buckets(day_ms, step_ms, DAY_MS // step_ms)


@dataclass(frozen=True, slots=True)
class CounterTable:
    """Counters. The rest of a bucket's time is unknown: no sample, a reset, or an impossible step.

    `low` and `high` are rates a second of the known time; of the gap's time without any known.
    """

    refs: Sequence[SeriesRef]
    known_ms: Integers  # with a rate of verdict ok or wrap
    gap_ms: Integers  # with an average over a gap only
    total: Floats  # growth; whole counts of a counter of whole numbers
    low: Floats
    high: Floats
    resets: Integers

    def mean(self) -> Floats:
        """Return growth a second over the time with a rate; NaN without any."""
        return _ratio(self.total * 1000, self.known_ms + self.gap_ms)


@dataclass(frozen=True, slots=True)
class GaugeTable:
    """Gauges. A bucket without a known time has zeros."""

    refs: Sequence[SeriesRef]
    known_ms: Integers
    mean: Floats  # by time
    low: Floats
    high: Floats
    last: Floats


@dataclass(frozen=True, slots=True)
class StateTable:
    """States: a row for each value of a series, with the time that the value lasted."""

    refs: Sequence[SeriesRef]
    values: Floats  # [rows]
    lasted_ms: Integers


@dataclass(frozen=True, slots=True)
class Rollup:
    """All series of a target in the same buckets."""

    buckets: Buckets
    counters: CounterTable
    gauges: GaugeTable
    states: StateTable
    shape_ids: frozenset[int] = field(init=False)

    def __post_init__(self) -> None:
        refs = (*self.counters.refs, *self.gauges.refs, *self.states.refs)
        object.__setattr__(self, "shape_ids", frozenset(ref.shape_id for ref in refs))

    @property
    def is_empty(self) -> bool:
        """Whether no series has any known time."""
        return not (
            self.counters.known_ms.any()
            or self.counters.gap_ms.any()
            or self.counters.resets.any()
            or self.gauges.known_ms.any()
            or self.states.lasted_ms.any()
        )


def coarser(rollup: Rollup, factor: int) -> Rollup:
    """Return the roll-up with buckets that each hold `factor` of these: sums stay exact."""
    return Rollup(
        rollup.buckets.coarser(factor),
        _coarser_counters(rollup.counters, factor),
        _coarser_gauges(rollup.gauges, factor),
        StateTable(
            rollup.states.refs, rollup.states.values, _sums(rollup.states.lasted_ms, factor)
        ),
    )


def _coarser_counters(table: CounterTable, factor: int) -> CounterTable:
    known_ms = _sums(table.known_ms, factor)
    # Averages over a gap count for the extremes only where there is nothing else.
    has_known = np.repeat(known_ms > 0, factor, axis=1)
    counts = np.where(has_known, table.known_ms > 0, table.gap_ms > 0)
    return CounterTable(
        refs=table.refs,
        known_ms=known_ms,
        gap_ms=_sums(table.gap_ms, factor),
        total=_sums(table.total, factor),
        low=_least(table.low, counts, factor),
        high=-_least(-table.high, counts, factor),
        resets=_sums(table.resets, factor),
    )


def _coarser_gauges(table: GaugeTable, factor: int) -> GaugeTable:
    known_ms = _sums(table.known_ms, factor)
    is_known = table.known_ms > 0
    low = _least(table.low, is_known, factor)
    high = -_least(-table.high, is_known, factor)
    with np.errstate(over="ignore", invalid="ignore"):
        sums = _sums(table.mean * table.known_ms, factor)
    mean = np.clip(np.nan_to_num(_ratio(sums, known_ms)), low, high)
    return GaugeTable(table.refs, known_ms, mean, low, high, _last(table.last, is_known, factor))


def _split(table: NDArray[Number], factor: int) -> NDArray[Number]:
    rows, count = table.shape
    return table.reshape(rows, count // factor, factor)


def _sums(table: NDArray[Number], factor: int) -> NDArray[Number]:
    summed: NDArray[Number] = _split(table, factor).sum(axis=2, dtype=table.dtype)
    return summed


def _least(table: Floats, counts: NDArray[np.bool_], factor: int) -> Floats:
    """Return the least of the fine buckets that count; 0 where none does."""
    least = _split(np.where(counts, table, np.inf), factor).min(axis=2)
    return np.asarray(np.where(np.isinf(least), 0.0, least))


def _last(table: Floats, is_known: NDArray[np.bool_], factor: int) -> Floats:
    """Return the value of the last fine bucket that is known; 0 where none is."""
    known = _split(is_known, factor)
    newest = factor - 1 - np.argmax(known[:, :, ::-1], axis=2)
    last = np.take_along_axis(_split(table, factor), newest[:, :, None], axis=2)[:, :, 0]
    return np.asarray(np.where(known.any(axis=2), last, 0.0))


def _ratio(amount: Floats, time_ms: Integers) -> Floats:
    empty = np.full(amount.shape, np.nan)
    return np.asarray(np.divide(amount, time_ms, out=empty, where=time_ms > 0))
