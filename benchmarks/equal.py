"""Do two ways to poll give the same? A benchmark of something else than the same work says nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from poller import errors
from poller.domain.metrics.reading import Kind, ReadingSet

#: Counters wrap at 32 bits, or where a float ends to count by ones.
_WRAPS = (2**53, 2**32)
#: Gauges that go on by themselves.
_CLOCKS = frozenset({"sysUpTime"})


class Sample(NamedTuple):
    name: str
    labels: frozenset[tuple[str, str]]


def samples(readings: ReadingSet) -> dict[Sample, tuple[float, bool]]:
    """Value of each, and whether it may grow."""
    pairs = zip(readings.series.series, readings.values, strict=True)
    return {
        Sample(s.name, frozenset(s.labels)): (value, s.kind is Kind.COUNTER or s.name in _CLOCKS)
        for s, value in pairs
    }


def same_names(who: str, found: Iterable[object], expected: Iterable[object]) -> None:
    """Raises StoreConflict, naming what is missing or too much."""
    missing, surplus = set(expected) - set(found), set(found) - set(expected)
    if missing or surplus:
        odd = sorted(map(str, missing or surplus))[0]
        word = "lacks" if missing else "has in addition"
        raise errors.StoreConflict(
            f"{who} does not read the same: it {word} {odd} ({len(missing | surplus)} differ)"
        )


def same_values(
    who: str, theirs: Mapping[Sample, float], before: ReadingSet, after: ReadingSet
) -> None:
    """What was read between two of our polls lies between them; what is no counter is the same in all three.

    Raises StoreConflict, naming the first sample that differs.
    """
    first, last = samples(before), samples(after)
    same_names(who, theirs, first)
    for sample, value in theirs.items():
        (low, grows), (high, _) = first[sample], last[sample]
        if not (_between(low, value, high) if grows else low == value == high):
            told = f"{sample.name}{dict(sample.labels)} is {value:.0f}, not between {low:.0f} and {high:.0f}"
            raise errors.StoreConflict(f"{who} does not read the same: {told}")


def _between(low: float, value: float, high: float) -> bool:
    return any((value - low) % wrap <= (high - low) % wrap for wrap in _WRAPS)
