"""What the rules of a target need of a poll when the next one comes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

from poller.domain.alerts.judging.series_names import names_of
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack


class PollToJudge(NamedTuple):
    """A poll that ended. `is_whole`: no part of it is missing."""

    at_ms: int
    readings: ReadingSet
    interval_ms: int
    is_whole: bool = True


@dataclass(frozen=True, slots=True)
class SeenPoll:
    """The kept columns of a poll, packed."""

    at_ms: int
    plan: Plan
    shape: SeriesSet
    kept: bytes
    #: The poll before, if a counter fell since: some agents answer 0 now and then.
    before_fall: SeenPoll | None = None

    def values(self) -> Sequence[float]:
        """Return the poll with the kept columns only; all others are NaN."""
        return self.plan.expanded(self.kept)

    def as_of(self, plan: Plan, shape: SeriesSet) -> SeenPoll:
        """Return this poll with the columns of another plan or shape. What it lacks is NaN."""
        if plan is self.plan and (shape is self.shape or shape == self.shape):
            return self
        values = self.values()
        by_column: dict[int, float]
        if shape == self.shape:
            by_column = dict(enumerate(values))
        else:
            by_column = _moved(self.shape, values, shape, plan)
        kept = pack([by_column.get(column, math.nan) for column in plan.kept])
        before = self.before_fall.as_of(plan, shape) if self.before_fall else None
        return SeenPoll(self.at_ms, plan, shape, kept, before)

    def with_before_fall(self, before: SeenPoll) -> SeenPoll:
        """Return this poll with the one before, which may have been right."""
        return replace(self, before_fall=replace(before, before_fall=None))


def seen(plan: Plan, at_ms: int, readings: ReadingSet) -> SeenPoll:
    """Return what the rules need of a poll."""
    return SeenPoll(at_ms, plan, readings.series, plan.kept_cut.cut(pack(readings.values)))


def _moved(old: SeriesSet, values: Sequence[float], new: SeriesSet, plan: Plan) -> dict[int, float]:
    """Return values of one shape by the columns of another: series keep their names."""
    by = plan.rules.by
    known = dict(zip(names_of(old, by).keys, values, strict=True))
    keys = names_of(new, by).keys
    return {column: known[keys[column]] for column in plan.kept if keys[column] in known}
