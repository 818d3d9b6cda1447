"""The figures of collectors: who uses each, and the counts of its polls of the last day."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from poller.domain.metrics.poll_totals import PollTotals


@dataclass(frozen=True, slots=True)
class CollectorFigures:
    """The figures of one collector."""

    devices: int = 0
    targets: int = 0
    totals: PollTotals = field(default_factory=PollTotals)


@dataclass(frozen=True, slots=True)
class AllFigures:
    """The figures of all collectors, polls since `since_ms`: a day ago, or later in a new
    cluster.
    """

    as_of_ms: int = 0
    since_ms: int = 0
    by_collector: Mapping[str, CollectorFigures] = field(default_factory=dict)

    def of(self, name: str) -> CollectorFigures:
        """The figures of one collector, also of one that nothing uses."""
        return self.by_collector.get(name) or CollectorFigures()
