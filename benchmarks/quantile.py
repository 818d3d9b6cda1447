"""Exact quantiles of counted milliseconds."""

from __future__ import annotations

from collections.abc import Mapping


def of(counts: Mapping[int, int], share: float) -> int:
    """Return the smallest value that the given share of all values does not exceed; 0 if empty."""
    wanted, seen = share * sum(counts.values()), 0
    for value in sorted(counts):
        seen += counts[value]
        if seen >= wanted:
            return value
    return 0
