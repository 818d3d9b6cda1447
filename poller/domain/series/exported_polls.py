"""Polls on their way out of the platform."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.domain.metrics.reading import Series


@dataclass(frozen=True, slots=True)
class ExportedPolls:
    """Polls of one target that have the same series. `values` has a row for each poll."""

    device: str
    target: str
    series: Sequence[Series]
    at_ms: Sequence[int]
    values: Sequence[Sequence[float]]

    @property
    def samples(self) -> int:
        return len(self.series) * len(self.at_ms)
