"""Sums over time, cut at the edges of buckets: a span that crosses an edge is split by time."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from poller.domain.rollups.rollup import Buckets, Number
from poller.domain.rollups.sample_columns import Floats, Integers


@dataclass(frozen=True, slots=True)
class CutSpans:
    """Consecutive spans, `at_ms[n]` to `at_ms[n + 1]`, and where the edges of buckets cut them."""

    span: Integers  # [edges]: the span that each edge lies in
    inside_ms: Integers  # [edges]: from the start of that span to the edge
    length_ms: Integers  # [spans]
    first: Integers  # [buckets]: the first span of each bucket
    end: Integers  # [buckets]: the span after its last one; not after `first`: none

    def whole_sums(self, amounts: Floats) -> Floats:
        """Return the sum of amounts in each bucket; whole amounts are split in whole numbers.

        The parts of a span add up to its amount, in this roll-up and in that of the next day.
        """
        parts = self._parts(amounts)
        is_whole = (amounts == np.floor(amounts)).all(axis=1)
        return self._added(amounts, np.where(is_whole[:, None], np.floor(parts + 0.5), parts))

    def sums(self, amounts: Floats) -> Floats:
        """Return the sum of amounts in each bucket."""
        return self._added(amounts, self._parts(amounts))

    def lengths(self, flags: NDArray[np.bool_]) -> Integers:
        """Return the time of the flagged spans in each bucket."""
        lengths = np.where(flags, self.length_ms, 0)
        parts = np.where(flags[:, self.span], self.inside_ms, 0)
        return np.asarray(np.diff(self._before(lengths) + parts, axis=1))

    def least(self, values: Floats) -> Floats:
        """Return the least value of the spans that touch each bucket; infinity for none."""
        padded = np.concatenate((values, np.full((len(values), 1), np.inf)), axis=1)
        pairs = np.stack((self.first, self.end), axis=1).ravel()
        least = np.minimum.reduceat(padded, pairs, axis=1)[:, ::2]
        return np.asarray(np.where(self.end > self.first, least, np.inf))

    def _parts(self, amounts: Floats) -> Floats:
        """Return the part of a span's amount that lies before each edge."""
        share = self.inside_ms / self.length_ms[self.span]
        return np.asarray(amounts[:, self.span] * share)

    def _added(self, amounts: Floats, parts: Floats) -> Floats:
        """Return what is left of the first span, whole spans, and the part of the last one.

        No bucket is a difference of sums over the day: after one huge amount it would be noise.
        """
        first, last = self.span[:-1], self.span[1:]
        padded = np.concatenate((amounts, np.zeros((len(amounts), 1))), axis=1)
        pairs = np.stack((first + 1, np.maximum(last, first + 1)), axis=1).ravel()
        whole = np.add.reduceat(padded, pairs, axis=1)[:, ::2]
        whole = np.where(last > first + 1, whole, 0.0)
        left = amounts[:, first] - parts[:, :-1] + whole + parts[:, 1:]
        return np.asarray(np.where(last > first, left, parts[:, 1:] - parts[:, :-1]))

    def _before(self, amounts: NDArray[Number]) -> NDArray[Number]:
        """Return the sum of all spans before the one that each edge lies in."""
        sums: NDArray[Number] = np.zeros((len(amounts), amounts.shape[1] + 1), amounts.dtype)
        np.cumsum(amounts, axis=1, out=sums[:, 1:])
        return sums[:, self.span]


def cut(at_ms: Integers, buckets: Buckets) -> CutSpans:
    """Cut the spans between instants, at least two and each later than the one before."""
    edges = buckets.edges()
    spans = len(at_ms) - 1
    span = np.clip(np.searchsorted(at_ms, edges, side="right") - 1, 0, spans - 1)
    length_ms = np.diff(at_ms)
    inside_ms = np.clip(edges - at_ms[span], 0, length_ms[span])
    first = np.clip(np.searchsorted(at_ms[1:], edges[:-1], side="right"), 0, spans)
    end = np.clip(np.searchsorted(at_ms[:-1], edges[1:], side="left"), 0, spans)
    return CutSpans(span, inside_ms, length_ms, first, end)
