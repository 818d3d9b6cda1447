"""Judge a poll by the metric rules of its target: which of them hold from now on.

A quiet poll costs a few comparisons in C, without a look at names: see `judging/watch_plan.py`. No
clock and no store is used here, so `rules test` judges history by the same function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import NamedTuple

from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.judging.interface_state import InterfaceState
from poller.domain.alerts.judging.plan_maker import plan_of
from poller.domain.alerts.judging.rule_check import RuleCheck
from poller.domain.alerts.judging.rule_set import Look, MetricRule, RuleSet, metric_rule
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.series_names import names_of
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.alerts.mark import MOST_MARKS, Mark
from poller.domain.alerts.rule import MetricCondition, Rule
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack
from poller.domain.metrics.series_identity import Identity

#: The instant and the value of a mark that goes on are brought up to date this often.
REFRESH_MS = 60_000
#: A series that whole polls lack for so long has gone, and its marks with it.
ABSENT_MS = 15 * 60_000


class Judgement(NamedTuple):
    """What follows from a poll. `marks` is None if they stay as they were."""

    seen: SeenPoll
    marks: list[Mark] | None = None
    is_news: bool = False  # a mark began or ended


class Suspect(NamedTuple):
    """A series that a rule may hold for, by its place among those that are looked at."""

    look: Look
    place: int


def judge(
    plan: Plan,
    poll: PollToJudge,
    before: SeenPoll | None,
    stored: str = "",
    *,
    is_current: bool = True,
) -> Judgement:
    """Return what follows from a poll. `stored` is the text of the target's marks.

    With `is_current` the plan has all rules of the cluster: a mark of another rule is left over.
    """
    packed = pack(poll.readings.values)
    shape = poll.readings.series
    now = SeenPoll(poll.at_ms, plan, shape, plan.kept_cut.cut(packed))
    if before is not None:
        before = before.as_of(plan, shape)
    suspects = _suspects(plan, poll, packed, now, before)
    if before is not None and suspects and plan.has_fallen(before.kept, now.kept):
        now = now.with_before_fall(before)
    if not suspects and not stored:
        return Judgement(now)
    old = mark_format.unpack(stored)
    marks = _Marks(plan, poll, before, old).after(suspects, is_current=is_current)
    is_damaged = bool(stored and not old)
    if marks == old and not is_damaged:
        return Judgement(now)
    is_news = {mark.key for mark in marks} != {mark.key for mark in old}
    return Judgement(now, marks, is_news)


def wants_history(plan: Plan, readings: ReadingSet) -> bool:
    """Whether the poll before would matter if it were known: an interface is down, and may have
    been up.
    """
    states = plan.states_of(readings.values)
    return InterfaceState.DOWN in states.values()


class Span(NamedTuple):
    """A time in which a rule held for a series: from the poll that showed it to the one that showed
    its end; 0: it holds at the last poll. The value is that of the first poll.
    """

    since_ms: int
    until_ms: int
    value: float | None
    series: str
    labels: Mapping[str, str]


def replay(
    rule: Rule,
    polls: Iterable[tuple[int, ReadingSet]],
    interval_ms: int = 60_000,
    by: Identity = Identity.IF_NAME,
) -> Iterator[Span]:
    """Yield the spans in which a metric rule held in stored polls of a target, oldest first.

    They come in the order of their ends. A rule of another kind has none.
    """
    if not isinstance(rule.condition, MetricCondition):
        return
    rules = RuleSet((metric_rule(rule.id, rule.condition),), by)
    plans: dict[SeriesSet, Plan] = {}
    before: SeenPoll | None = None
    marks: list[Mark] = []
    begun: dict[str, Mark] = {}  # by series, as they began
    for at_ms, readings in polls:
        shape = readings.series
        if shape not in plans:
            plans[shape] = plan_of(rules, shape)
        plan = plans[shape]
        poll = PollToJudge(at_ms, readings, interval_ms)
        judged = judge(plan, poll, before, mark_format.pack(marks))
        before = judged.seen
        if judged.marks is not None:
            marks = judged.marks
            going_on = {mark.series: mark for mark in marks}
            for series in [series for series in begun if series not in going_on]:
                yield _span(begun.pop(series), at_ms)
            begun = {**going_on, **begun}
    for mark in begun.values():
        yield _span(mark, 0)


def _span(mark: Mark, until_ms: int) -> Span:
    return Span(mark.since_ms, until_ms, mark.value, mark.series, mark.labels)


def _suspects(
    plan: Plan, poll: PollToJudge, packed: bytes, now: SeenPoll, before: SeenPoll | None
) -> list[Suspect]:
    found = [Suspect(Look.VALUE, place) for place in plan.unusual_values(packed)]
    if before is None:
        return found
    seconds = (poll.at_ms - before.at_ms) / 1000
    for place in plan.unusual_growth(before.kept, now.kept, seconds):
        found.append(Suspect(Look.RATE, place))
    if before.kept[plan.states] != now.kept[plan.states]:
        found += [Suspect(Look.STATE, place) for place in range(len(plan.interfaces))]
    return found


class _Marks:
    """The marks of a target from one poll to the next."""

    def __init__(
        self, plan: Plan, poll: PollToJudge, before: SeenPoll | None, old: list[Mark]
    ) -> None:
        self._plan = plan
        self._poll = poll
        self._old = {mark.key: mark for mark in old}
        self._names = names_of(poll.readings.series, plan.rules.by)
        self._check = RuleCheck(poll, plan, before, self._names)
        self._rules = {rule.id: place for place, rule in enumerate(plan.rules.rules)}

    def after(self, suspects: Iterable[Suspect], *, is_current: bool) -> list[Mark]:
        """Return the marks that hold now: those that go on, then new ones."""
        found = []
        for mark in self._old.values():
            place = self._rules.get(mark.rule_id)
            if place is not None:
                continued = self._continued(mark, place)
            else:
                continued = None if is_current else mark
            if continued is not None:
                found.append(continued)
        found.extend(self._new(suspects))
        return found[:MOST_MARKS]

    def _continued(self, mark: Mark, place: int) -> Mark | None:
        """Return the mark as it is from now on, or None if it ends."""
        rule = self._plan.rules.rules[place]
        age_ms = self._poll.at_ms - mark.at_ms
        column = self._column(rule, place, mark.series)
        if column is None:
            has_gone = self._poll.is_whole and age_ms > ABSENT_MS
            return None if has_gone else mark
        found = self._check.check(rule, column, mark)
        if found.holds is None:
            return mark
        if not found.holds:
            return None
        if age_ms < REFRESH_MS:
            return mark
        return replace(mark, at_ms=self._poll.at_ms, value=found.value)

    def _column(self, rule: MetricRule, place: int, series: str) -> int | None:
        for column in self._plan.watched(rule.look).columns_of(place):
            if self._names.texts[column] == series:
                return column
        return None

    def _new(self, suspects: Iterable[Suspect]) -> Iterator[Mark]:
        at_ms = self._poll.at_ms
        for look, place in suspects:
            watched = self._plan.watched(look)
            column = watched.columns[place]
            text = self._names.texts[column]
            for at in watched.rules_of(place):
                rule = self._plan.rules.rules[at]
                if (rule.id, text) in self._old:
                    continue
                found = self._check.check(rule, column, None)
                if found.holds:
                    labels = dict(self._names.series[column].labels)
                    yield Mark(rule.id, text, at_ms, at_ms, found.value, labels)
