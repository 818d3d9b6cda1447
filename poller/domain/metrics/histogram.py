"""A histogram small enough to add up in Redis: logarithmic buckets, about 10 % wide, from 1 ms upwards."""

from __future__ import annotations

import math
from collections.abc import Mapping

_GROWTH = math.log(1.1)


def bucket(value_ms: float) -> int:
    """The bucket of a value; what is not positive goes to bucket 0."""
    return 0 if value_ms < 1 else 1 + int(math.log(value_ms) / _GROWTH)


def upper_ms(index: int) -> float:
    """The upper edge of a bucket, in milliseconds."""
    return float(math.exp(index * _GROWTH)) if index > 0 else 0.0


def quantile_ms(counts: Mapping[int, int], share: float) -> float:
    """The value below which that share of all values lies (upper edge of its bucket); 0 when empty."""
    wanted = share * sum(counts.values())
    seen = 0
    for index in sorted(counts):
        seen += counts[index]
        if seen >= wanted:
            return upper_ms(index)
    return 0.0
