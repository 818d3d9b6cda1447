"""The staleness of a target's data: a score in [0, 1].

1 asks for the shortest interval, 0 for the longest. A source is a pure function of `Evidence`. The
built-in sources are here. All sources, also these, are loaded by the entry points
`poller.staleness` (collectors/staleness_registry.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poller.domain.metrics.reading import Kind, Labels, ReadingSet
from poller.domain.scheduling.interval import Adaptive

DEFAULT = "steady"
#: The age of old data where a target has no longest interval.
MAX_STALE_MS = 300_000
_COUNTER = Kind.COUNTER


@dataclass(frozen=True, slots=True)
class Evidence:
    """The view of a target that a source gets at the end of a poll."""

    policy: Adaptive
    now_ms: int
    ok_ms: int  # end of the last good poll, this one included; 0: never
    readings: ReadingSet | None = None  # of this poll, if it was complete
    before: ReadingSet | None = None  # of the complete poll before, if this worker ran it


Source = Callable[[Evidence], float]


def comparing(source: Source) -> Source:
    """Mark a source that compares readings: a worker retains the last readings only for these."""
    source.comparing = True  # type: ignore[attr-defined]
    return source


def steady(evidence: Evidence) -> float:
    """A healthy target has its base interval; the older its data, the shorter the interval."""
    neutral = evidence.policy.neutral
    span = 1 - neutral
    return neutral + span * age(evidence)


def age(evidence: Evidence) -> float:
    """The age of the data against the longest interval.

    A healthy target gets the longest interval.
    """
    if not evidence.ok_ms:
        return 1.0
    old_ms = evidence.now_ms - evidence.ok_ms
    max_stale_ms = evidence.policy.max_ms if evidence.policy.max_ms > 0 else MAX_STALE_MS
    return min(1.0, max(0.0, old_ms / max_stale_ms))


@comparing
def change(evidence: Evidence) -> float:
    """The share of gauges and infos that changed: a quiet device is polled slowly."""
    changed = share_changed(evidence.before, evidence.readings)
    if changed is None:
        return steady(evidence)
    return changed


def share_changed(before: ReadingSet | None, after: ReadingSet | None) -> float | None:
    """Return the share of changed gauges and infos, None when there is nothing to compare."""
    if before is None or after is None:
        return None

    pairs = _pairs(before, after)
    if not pairs:
        return None

    changed = sum(_differ(old, new) for old, new in pairs)
    return changed / len(pairs)


def _differ(old: float | None, new: float | None) -> bool:
    if old == new:
        return False
    both_are_nan = old != old and new != new
    return not both_are_nan


def _pairs(before: ReadingSet, after: ReadingSet) -> list[tuple[float | None, float | None]]:
    """Return old and new value of every gauge and info; None for a series of one poll only."""
    if before.series is after.series:
        rows = zip(after.series.kinds, before.values, after.values, strict=True)
        return [(old, new) for kind, old, new in rows if kind is not _COUNTER]

    old_values = _values(before)
    new_values = _values(after)
    keys = old_values.keys() | new_values.keys()
    return [(old_values.get(key), new_values.get(key)) for key in keys]


def _values(readings: ReadingSet) -> dict[tuple[str, Labels], float]:
    values = {}
    for series, value in zip(readings.series.series, readings.values, strict=True):
        if series.kind is not _COUNTER:
            values[series.name, series.labels] = value
    return values
