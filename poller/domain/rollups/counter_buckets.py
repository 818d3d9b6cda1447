"""Judged steps of counters to the columns of a roll-up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from poller.domain.rollups import bucket_edges, verdict_columns
from poller.domain.rollups.bucket_edges import CutSpans
from poller.domain.rollups.counter_samples import CounterSamples
from poller.domain.rollups.rollup import Buckets, CounterTable
from poller.domain.rollups.sample_columns import Floats, Integers
from poller.domain.rollups.verdict_columns import GAP, RESET, WRAP, Steps


def roll_up(samples: CounterSamples, buckets: Buckets, interval_ms: int) -> CounterTable:
    """Return the roll-up of counters, of the steps that touch these buckets."""
    size = (len(samples.refs), buckets.count)
    table = CounterTable(
        refs=samples.refs,
        known_ms=np.zeros(size, np.int64),
        gap_ms=np.zeros(size, np.int64),
        total=np.zeros(size),
        low=np.zeros(size),
        high=np.zeros(size),
        resets=np.zeros(size, np.int64),
    )
    for steps in verdict_columns.judge(samples, interval_ms):
        _fill(table, steps, buckets)
    return table


def _fill(table: CounterTable, steps: Steps, buckets: Buckets) -> None:
    """Fill in the rows of counters with common steps."""
    cut = bucket_edges.cut(steps.at_ms, buckets)
    rows = steps.counters
    is_plain = ~steps.codes.any(axis=1)
    every_step = np.ones((1, len(cut.length_ms)), bool)
    table.known_ms[rows[is_plain]] = cut.lengths(every_step)
    odd = np.flatnonzero(~is_plain)
    if len(odd):
        table.known_ms[rows[odd]] = cut.lengths(steps.codes[odd] <= WRAP)
        table.gap_ms[rows[odd]] = cut.lengths(steps.codes[odd] == GAP)
        table.resets[rows[odd]] = _resets(steps, odd, buckets)

    moving = np.flatnonzero(steps.growth.any(axis=1))
    if len(moving):
        _fill_rates(table, steps, moving, cut)


def _resets(steps: Steps, chosen: Integers, buckets: Buckets) -> Integers:
    """Count the resets in each bucket: of steps that end in it, the bucket's end included."""
    counts = np.zeros((len(chosen), buckets.count), np.int64)
    counter, step = np.nonzero(steps.codes[chosen] == RESET)
    bucket = (steps.at_ms[step + 1] - 1 - buckets.start_ms) // buckets.step_ms
    inside = (bucket >= 0) & (bucket < buckets.count)
    np.add.at(counts, (counter[inside], bucket[inside]), 1)
    return counts


def _fill_rates(table: CounterTable, steps: Steps, moving: Integers, cut: CutSpans) -> None:
    """Fill in totals and extremes of counters that grew at all."""
    rows = steps.counters[moving]
    growth = steps.growth[moving]
    codes = steps.codes[moving]
    per_second = growth / (cut.length_ms / 1000)
    has_known = table.known_ms[rows] > 0
    has_gap = table.gap_ms[rows] > 0

    table.total[rows] = cut.whole_sums(growth)
    low = _least(per_second, codes, cut)
    high = -_least(-per_second, codes, cut)
    table.low[rows] = np.where(has_known | has_gap, low, 0.0)
    table.high[rows] = np.where(has_known | has_gap, high, 0.0)


def _least(per_second: Floats, codes: NDArray[np.uint8], cut: CutSpans) -> Floats:
    """Return the least rate in each bucket; that of averages over gaps if there is no other."""
    if not codes.any():
        return cut.least(per_second)
    least = cut.least(np.where(codes <= WRAP, per_second, np.inf))
    averaged = np.flatnonzero((codes == GAP).any(axis=1))
    if len(averaged):
        is_average = codes[averaged] == GAP
        averages = cut.least(np.where(is_average, per_second[averaged], np.inf))
        least[averaged] = np.where(np.isinf(least[averaged]), averages, least[averaged])
    return least
