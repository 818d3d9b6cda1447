"""How stale is a target's data? A score in [0, 1]: 1 asks for the shortest interval, 0 for the longest.

A source is a pure function of `Evidence`. These are the built-in ones; anybody's come in by the entry points
`poller.staleness` (collectors/staleness_registry.py), as these do.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from poller.domain.metrics.reading import Kind, Labels, ReadingSet
from poller.domain.scheduling.interval import Adaptive

DEFAULT = "steady"
#: What counts as old where a target has no longest interval.
MAX_STALE_MS = 300_000


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of a target when a poll of it has ended."""

    policy: Adaptive
    now_ms: int
    ok_ms: int  # end of the last good poll, this one included; 0: never
    readings: ReadingSet | None = None  # of this poll, if it was complete
    before: ReadingSet | None = None  # of the complete poll before, if this worker made it


Source = Callable[[Evidence], float]


def comparing(source: Source) -> Source:
    """Mark a source that looks at readings: only for its targets does a worker keep those of the last poll."""
    source.comparing = True  # type: ignore[attr-defined]
    return source


def steady(evidence: Evidence) -> float:
    """A healthy target stays at its base; the older its data, the closer it gets to the shortest interval."""
    neutral = evidence.policy.neutral
    return neutral + (1 - neutral) * age(evidence)


def age(evidence: Evidence) -> float:
    """The age of the data against the longest interval. A healthy target drifts to the longest interval."""
    if not evidence.ok_ms:
        return 1.0
    old_ms = evidence.now_ms - evidence.ok_ms
    max_stale_ms = evidence.policy.max_ms if evidence.policy.max_ms > 0 else MAX_STALE_MS
    return min(1.0, max(0.0, old_ms / max_stale_ms))


@comparing
def change(evidence: Evidence) -> float:
    """The share of gauges and infos that changed since the last poll: a quiet device is polled slowly."""
    changed = share_changed(evidence.before, evidence.readings)
    return steady(evidence) if changed is None else changed


def share_changed(before: ReadingSet | None, after: ReadingSet | None) -> float | None:
    """None when there is nothing to compare. Counters always change, so they do not count."""
    if before is None or after is None:
        return None
    pairs = _pairs(before, after)
    changed = [
        pair
        for pair in pairs
        if pair[0] != pair[1] and not (pair[0] != pair[0] and pair[1] != pair[1])
    ]  # NaN
    return len(changed) / len(pairs) if pairs else None


def _pairs(before: ReadingSet, after: ReadingSet) -> list[tuple[float | None, float | None]]:
    """Old and new value of every gauge and info; None where it was not there."""
    if before.series is after.series:
        rows = zip(after.series.series, before.values, after.values, strict=True)
        return [(old, new) for series, old, new in rows if series.kind is not _COUNTER]
    was, now = _by_name(before), _by_name(after)
    return [(was.get(key), now.get(key)) for key in was.keys() | now.keys()]


def _by_name(readings: ReadingSet) -> dict[tuple[str, Labels], float]:
    rows = zip(readings.series.series, readings.values, strict=True)
    return {
        (series.name, series.labels): value for series, value in rows if series.kind is not _COUNTER
    }


_COUNTER = Kind.COUNTER
