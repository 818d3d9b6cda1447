"""Makes the plan of a shape: which columns the rules look at, and from which values on."""

from __future__ import annotations

import hashlib
import math
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from poller.domain.alerts.judging import interface_state
from poller.domain.alerts.judging.interface_state import InterfaceColumns
from poller.domain.alerts.judging.rate_limits import CounterLimit, RateLimits
from poller.domain.alerts.judging.rule_set import Look, MetricRule, RuleSet
from poller.domain.alerts.judging.watch_plan import VALUE_BYTES, Plan, Watched
from poller.domain.metrics.counter_evidence import EvidenceColumns, EvidenceFinder
from poller.domain.metrics.packed_columns import PackedColumns
from poller.domain.metrics.reading import SeriesSet
from poller.domain.metrics.series import Kind


def plan_of(rules: RuleSet, shape: SeriesSet) -> Plan:
    """Return the plan of a shape. Equal ones are one object."""
    layout = None if rules.has_labels else shape.layout
    if layout is not None:
        found: Plan | None = rules.plans.get(layout)
        if found is not None:
            return found
    made = _Maker(rules, shape).plan()
    key = _digest(made) if layout is None else layout
    shared: Plan = rules.plans.setdefault(key, made)
    return shared


def _digest(plan: Plan) -> bytes:
    """A text that is equal for equal plans of one rule set."""
    parts = []
    for watched in (plan.values, plan.counters, plan.interfaces):
        parts += [watched.columns.tobytes(), watched.starts.tobytes(), watched.rules.tobytes()]
    parts.append(plan.kept.tobytes())
    parts.append(repr((plan.size, plan.limits.counters, plan.interface_columns)).encode())
    return hashlib.blake2b(b"|".join(parts), digest_size=16).digest()


class _Maker:
    """Makes one plan."""

    def __init__(self, rules: RuleSet, shape: SeriesSet) -> None:
        self._rules = rules
        self._shape = shape
        self._series = shape.series

    def plan(self) -> Plan:
        values = self._watched(Look.VALUE)
        counters = self._watched(Look.RATE)
        interfaces = self._watched(Look.STATE)
        columns = [self._interfaces[column] for column in interfaces.columns]
        evidence = [self._finder.columns(at, self._series[at]) for at in counters.columns]
        limits = [self._of_counter(counters, place) for place in range(len(counters))]

        groups = _kept_groups(counters, columns, evidence, limits)
        ends = [VALUE_BYTES * sum(map(len, groups[:number])) for number in range(4)]
        places = {column: place for place, column in enumerate(groups[2])}
        limits = [
            _with_speed(limit, each, places) for limit, each in zip(limits, evidence, strict=True)
        ]
        return Plan(
            rules=self._rules,
            size=len(self._series),
            values=values,
            counters=counters,
            interfaces=interfaces,
            interface_columns=tuple(columns),
            kept=array("I", [column for group in groups for column in group]),
            states=slice(ends[1], ends[2]),
            speeds=slice(ends[2], ends[3]),
            limits=RateLimits(tuple(limits)),
            value_cut=PackedColumns(values.columns),
            kept_cut=PackedColumns(*groups),
            high=array("d", [self._least(values, place) for place in range(len(values))]),
            low=array("d", [self._greatest(values, place) for place in range(len(values))]),
        )

    @cached_property
    def _by_name(self) -> Mapping[str, Sequence[int]]:
        by_name: dict[str, list[int]] = {}
        for index, series in enumerate(self._series):
            by_name.setdefault(series.name, []).append(index)
        return by_name

    @cached_property
    def _finder(self) -> EvidenceFinder:
        return EvidenceFinder(self._shape)

    @cached_property
    def _interfaces(self) -> Mapping[int, InterfaceColumns]:
        return {each.operating: each for each in interface_state.find(self._series)}

    def _watched(self, look: Look) -> Watched:
        """Return the columns that rules of this kind look at."""
        rules_of: dict[int, list[int]] = {}
        for place, rule in enumerate(self._rules.rules):
            if rule.look is look:
                for column in self._columns(rule):
                    rules_of.setdefault(column, []).append(place)
        columns = sorted(rules_of)
        starts = [0]
        for column in columns:
            starts.append(starts[-1] + len(rules_of[column]))
        rules = [place for column in columns for place in rules_of[column]]
        return Watched(array("I", columns), array("I", starts), array("H", rules))

    def _columns(self, rule: MetricRule) -> Iterator[int]:
        """Yield the columns of one rule."""
        for column in self._candidates(rule):
            if rule.fits(self._series[column].labels):
                yield column

    def _candidates(self, rule: MetricRule) -> Iterable[int]:
        if rule.threshold is None:
            return self._interfaces
        columns = self._by_name.get(rule.threshold.metric, ())
        if rule.look is Look.VALUE:
            return columns
        return [column for column in columns if self._series[column].kind is Kind.COUNTER]

    def _rules_at(self, watched: Watched, place: int) -> list[MetricRule]:
        return [self._rules.rules[at] for at in watched.rules_of(place)]

    def _least(self, watched: Watched, place: int) -> float:
        """The least value that a rule is about from above."""
        return _least(self._rules_at(watched, place))

    def _greatest(self, watched: Watched, place: int) -> float:
        """The greatest value that a rule is about from below."""
        return _greatest(self._rules_at(watched, place))

    def _of_counter(self, counters: Watched, place: int) -> CounterLimit:
        rules = self._rules_at(counters, place)
        absolute = [rule for rule in rules if not rule.is_percent]
        percent = [rule for rule in rules if rule.is_percent]
        return CounterLimit(
            _least(absolute), _greatest(absolute), _least(percent), _greatest(percent)
        )


def _least(rules: Iterable[MetricRule]) -> float:
    limits = [rule.threshold.above for rule in rules if rule.threshold is not None]
    return min((limit for limit in limits if limit is not None), default=math.inf)


def _greatest(rules: Iterable[MetricRule]) -> float:
    limits = [rule.threshold.below for rule in rules if rule.threshold is not None]
    return max((limit for limit in limits if limit is not None), default=-math.inf)


def _kept_groups(
    counters: Watched,
    interfaces: Iterable[InterfaceColumns],
    evidence: Sequence[EvidenceColumns],
    limits: Sequence[CounterLimit],
) -> tuple[list[int], list[int], list[int], list[int]]:
    """Return the columns that are kept: counters, states, speeds and other evidence. None twice."""
    first = list(counters.columns)
    states = {each.operating for each in interfaces}
    states.update(each.admin for each in interfaces if each.admin is not None)
    states.difference_update(first)
    speeds: set[int] = set()
    others: set[int] = set()
    for each, limit in zip(evidence, limits, strict=True):
        speed_columns = _known(each.high_speed, each.speed)
        (speeds if limit.needs_speed else others).update(speed_columns)
        others.update(_known(each.uptime, each.discontinuity, each.connector))
    speeds.difference_update(first, states)
    others.difference_update(first, states, speeds)
    return first, sorted(states), sorted(speeds), sorted(others)


def _known(*columns: int | None) -> set[int]:
    return {column for column in columns if column is not None}


def _with_speed(
    limit: CounterLimit, evidence: EvidenceColumns, places: Mapping[int, int]
) -> CounterLimit:
    """Return the limit with the places of its link's speed."""
    if not limit.needs_speed:
        return limit
    high_speed = None if evidence.high_speed is None else places.get(evidence.high_speed)
    speed = None if evidence.speed is None else places.get(evidence.speed)
    return CounterLimit(
        limit.high, limit.low, limit.percent_high, limit.percent_low, high_speed, speed
    )
