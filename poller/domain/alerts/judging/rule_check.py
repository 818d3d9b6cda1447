"""Whether a rule holds for one series in one poll, exactly. `watch_plan.py` is the sieve before."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from poller.domain.alerts.judging.interface_state import InterfaceState
from poller.domain.alerts.judging.rule_set import Look, MetricRule
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.series_names import SeriesNames
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import Threshold
from poller.domain.metrics import counters
from poller.domain.metrics.counters import Point, Rate, Verdict


class Finding(NamedTuple):
    """`holds` is None if the poll does not tell: the mark stays as it was."""

    holds: bool | None
    value: float | None = None


NOT_KNOWN = Finding(None)


@dataclass
class RuleCheck:
    """Checks rules for series of one poll. `before` has the same plan and shape."""

    poll: PollToJudge
    plan: Plan
    before: SeenPoll | None
    names: SeriesNames

    def check(self, rule: MetricRule, column: int, mark: Mark | None) -> Finding:
        """Return whether a rule holds for the series of a column. `mark`: it held until now."""
        if rule.look is Look.STATE:
            return self._state(rule, column, mark)
        if rule.look is Look.VALUE:
            value = self.poll.readings.values[column]
            return _compared(rule, value, is_marked=mark is not None)
        rate = self._rate(column)
        if rate is None or rate.per_second is None:
            return NOT_KNOWN
        measured = self._percent(column, rate) if rule.is_percent else rate.per_second
        found = _compared(rule, measured, is_marked=mark is not None)
        return _of_average(rule, found) if rate.verdict is Verdict.GAP else found

    def _rate(self, column: int) -> Rate | None:
        """Return the rate since the poll before, by the verdict engine."""
        if self.before is None or not math.isfinite(self._values_before[column]):
            return None
        series = self.names.series[column]
        evidence = self.names.finder.columns(column, series)
        points: list[Point] = []
        if self.before.before_fall is not None:
            points.append(evidence.point(self.before.before_fall.at_ms, self._values_before_fall))
        points.append(evidence.point(self.before.at_ms, self._values_before))
        points.append(evidence.point(self.poll.at_ms, self.poll.readings.values))
        rates = list(counters.rates(points, series.width, self.poll.interval_ms))
        return rates[-1] if rates and rates[-1].at_ms == self.poll.at_ms else None

    @cached_property
    def _values_before(self) -> Sequence[float]:
        assert self.before is not None
        return self.before.values()

    @cached_property
    def _values_before_fall(self) -> Sequence[float]:
        assert self.before is not None
        assert self.before.before_fall is not None
        return self.before.before_fall.values()

    def _percent(self, column: int, rate: Rate) -> float | None:
        """Return a rate of octets in percent of the link; None beyond what it can carry: a tunnel
        has a nominal speed.
        """
        evidence = self.names.finder.columns(column, self.names.series[column])
        bits_per_s = evidence.link_bits_per_s(self.poll.readings.values)
        if not bits_per_s or rate.per_second is None:
            return None
        percent = rate.per_second * 8 / bits_per_s * 100
        most = 100 * counters.SPEED_MARGIN * (rate.seconds + counters.REFRESH_S) / rate.seconds
        return percent if percent <= most else None

    def _state(self, rule: MetricRule, column: int, mark: Mark | None) -> Finding:
        """An interface goes down from one poll to the next, and is down until it is up or off, or
        until it has been down for so long that it is meant to be.
        """
        state = self._states[column]
        if state is InterfaceState.UNKNOWN:
            return NOT_KNOWN
        if state is not InterfaceState.DOWN:
            return Finding(False)
        if mark is not None:
            return Finding(self.poll.at_ms - mark.since_ms <= rule.days_ms)
        if self.before is None:
            return NOT_KNOWN
        is_recent = self.poll.at_ms - self.before.at_ms <= rule.days_ms
        return Finding(is_recent and self._states_before[column] is InterfaceState.UP)

    @cached_property
    def _states(self) -> dict[int, InterfaceState]:
        return self.plan.states_of(self.poll.readings.values)

    @cached_property
    def _states_before(self) -> dict[int, InterfaceState]:
        return self.plan.states_of(self._values_before)


def _compared(rule: MetricRule, value: float | None, *, is_marked: bool) -> Finding:
    if value is None or rule.threshold is None or not math.isfinite(value):
        return NOT_KNOWN
    return Finding(_holds(rule.threshold, value, is_marked=is_marked), value / rule.unit)


def _holds(threshold: Threshold, value: float, *, is_marked: bool) -> bool:
    """A condition that held until now ends at `clear`, which lies on the good side."""
    clear = threshold.clear if is_marked else None
    if threshold.above is not None:
        return value > (threshold.above if clear is None else clear)
    return threshold.below is not None and value < (threshold.below if clear is None else clear)


def _of_average(rule: MetricRule, found: Finding) -> Finding:
    """An average over missing polls, or a rate of at least so much, shows too much and never too
    little.
    """
    is_above = rule.threshold is not None and rule.threshold.above is not None
    return found if found.holds and is_above else NOT_KNOWN
