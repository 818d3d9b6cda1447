"""Polls of interfaces for tests of rules: values by metric and interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from poller.domain.alerts import judgement
from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.judgement import Judgement
from poller.domain.alerts.judging.plan_maker import plan_of
from poller.domain.alerts.judging.rule_set import RuleSet, metric_rule
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import InterfaceDown, Measure, MetricCondition, Threshold
from poller.domain.metrics.reading import Kind, Reading, ReadingSet

BEGIN_MS = 1_800_000_000_000
MINUTE_MS = 60_000
DAY_MS = 86_400_000
MEGABIT = 1_000_000 / 8  # octets

IN_OCTETS = "ifHCInOctets"
BUSY = Threshold(IN_OCTETS, Measure.PERCENT_OF_SPEED, above=80.0, clear=70.0)
FAST = Threshold(IN_OCTETS, Measure.RATE, above=1000.0)
HOT = Threshold("temperature", above=60.0, clear=50.0)
DOWN = InterfaceDown(days=7.0)
WIDTHS = {IN_OCTETS: 64, "ifInErrors": 32}

Values = Mapping[str, float | Sequence[float]]


def readings(values: Values, names: Sequence[str] = ("eth0", "eth1"), first: int = 1) -> ReadingSet:
    """A list has a value for each interface; a number belongs to the device."""
    made = []
    for metric, value in values.items():
        kind = Kind.COUNTER if metric in WIDTHS else Kind.GAUGE
        width = WIDTHS.get(metric, 0)
        if isinstance(value, float | int):
            made.append(Reading(metric, value, {}, kind, width))
            continue
        for number, (name, each) in enumerate(zip(names, value, strict=True), first):
            labels = {"ifIndex": str(number), "ifName": name, "ifAlias": f"to {name}"}
            made.append(Reading(metric, each, labels, kind, width))
    return ReadingSet.of(made)


class Watcher:
    """Judges polls of one target one after another, as a worker does."""

    def __init__(self, *conditions: MetricCondition) -> None:
        rules = [metric_rule(number, each) for number, each in enumerate(conditions, 1)]
        self.rules = RuleSet(tuple(rules))
        self.before: SeenPoll | None = None
        self.stored = ""
        self.at_ms = BEGIN_MS
        self.last: Judgement

    def poll(
        self,
        values: Values | ReadingSet,
        after_ms: int = MINUTE_MS,
        *,
        is_whole: bool = True,
        is_current: bool = True,
    ) -> dict[str, float | None]:
        """Judge the next poll. Returns the values of the marks by series."""
        self.at_ms += after_ms
        given = values if isinstance(values, ReadingSet) else readings(values)
        plan = plan_of(self.rules, given.series)
        poll = PollToJudge(self.at_ms, given, MINUTE_MS, is_whole)
        self.last = judgement.judge(plan, poll, self.before, self.stored, is_current=is_current)
        self.before = self.last.seen
        if self.last.marks is not None:
            self.stored = mark_format.pack(self.last.marks)
        return {mark.series: mark.value for mark in self.marks}

    @property
    def marks(self) -> list[Mark]:
        return mark_format.unpack(self.stored)
