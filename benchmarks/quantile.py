"""Exact quantiles of whole milliseconds that were counted."""

from __future__ import annotations

from collections.abc import Mapping


def of(counts: Mapping[int, int], share: float) -> int:
    """The least value that so large a share of all values does not exceed; 0 when there are none."""
    wanted, seen = share * sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return 0
