"""A histogram that Redis can add up: logarithmic buckets, about 10 % wide, from 1 ms on."""

from __future__ import annotations

import bisect
import math
from collections.abc import Mapping, Sequence

_GROWTH = math.log(1.1)


def bucket(value_ms: float) -> int:
    """Return the bucket of a value; a value below 1 ms goes to bucket 0."""
    if value_ms < 1:
        return 0
    return 1 + int(math.log(value_ms) / _GROWTH)


def upper_ms(index: int) -> float:
    """Return the upper edge of a bucket in milliseconds."""
    if index <= 0:
        return 0.0
    return math.exp(index * _GROWTH)


def bands(counts: Mapping[int, int], edges_ms: Sequence[float]) -> tuple[int, ...]:
    """Return the number of values up to each edge; the last number is that of the rest."""
    found = [0] * (len(edges_ms) + 1)
    for index, count in counts.items():
        value_ms = upper_ms(index - 1)  # the lower edge of the bucket
        found[bisect.bisect_left(edges_ms, value_ms)] += count
    return tuple(found)


def quantile_ms(counts: Mapping[int, int], share: float) -> float:
    """Return the upper edge of the bucket where that share of the values is reached; 0 if empty."""
    rank = share * sum(counts.values())
    cumulated = 0
    for index in sorted(counts):
        cumulated += counts[index]
        if cumulated >= rank:
            return upper_ms(index)
    return 0.0
