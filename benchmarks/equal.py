"""Check that two collectors return the same values, so that their costs are comparable."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from poller import errors
from poller.domain.metrics.reading import Kind, ReadingSet

#: Counters wrap at 32 bits, or at the largest exact integer of a float.
_WRAPS = (2**53, 2**32)
#: Gauges that change without traffic.
_CLOCKS = frozenset({"sysUpTime"})


class Sample(NamedTuple):
    name: str
    labels: frozenset[tuple[str, str]]


def samples(readings: ReadingSet) -> dict[Sample, tuple[float, bool]]:
    """Return the value of each sample, and whether it may grow."""
    pairs = zip(readings.series.series, readings.values, strict=True)
    return {
        Sample(s.name, frozenset(s.labels)): (value, s.kind is Kind.COUNTER or s.name in _CLOCKS)
        for s, value in pairs
    }


def same_names(who: str, found: Iterable[object], expected: Iterable[object]) -> None:
    """Check that both have the same samples. Raises StoreConflict with the difference."""
    missing, surplus = set(expected) - set(found), set(found) - set(expected)
    if missing or surplus:
        odd = sorted(map(str, missing or surplus))[0]
        word = "lacks" if missing else "has in addition"
        raise errors.StoreConflict(
            f"{who} reads other samples: it {word} {odd} ({len(missing | surplus)} differ)"
        )


def same_values(
    who: str, theirs: Mapping[Sample, float], before: ReadingSet, after: ReadingSet
) -> None:
    """Check values that were read between two of our polls: counters lie between, others are equal.

    Raises StoreConflict with the first sample that differs.
    """
    first, last = samples(before), samples(after)
    same_names(who, theirs, first)
    for sample, value in theirs.items():
        (low, grows), (high, _) = first[sample], last[sample]
        if not (_between(low, value, high) if grows else low == value == high):
            difference = f"{sample.name}{dict(sample.labels)} is {value:.0f}"
            raise errors.StoreConflict(
                f"{who} reads another value: {difference}, not between {low:.0f} and {high:.0f}"
            )


def _between(low: float, value: float, high: float) -> bool:
    return any((value - low) % wrap <= (high - low) % wrap for wrap in _WRAPS)
