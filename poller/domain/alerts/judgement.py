"""Judge a poll by the metric rules of its target: which of them hold from now on.

A quiet poll costs a few comparisons in C, without a look at names: see `judging/watch_plan.py`. No
clock and no store is used here, so `rules test` judges history by the same function.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.judging.interface_state import InterfaceState
from poller.domain.alerts.judging.next_marks import NextMarks, Suspect
from poller.domain.alerts.judging.plan_maker import plan_of
from poller.domain.alerts.judging.rule_set import Look, RuleSet, metric_rule
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.alerts.mark import Mark
from poller.domain.alerts.rule import MetricCondition, Rule
from poller.domain.metrics.counters import GAP_INTERVALS
from poller.domain.metrics.reading import ReadingSet, SeriesSet, pack
from poller.domain.metrics.series_identity import Identity


class Judgement(NamedTuple):
    """The judgement of a poll. `marks` is None if they stay as they were."""

    seen: SeenPoll
    marks: list[Mark] | None = None
    is_news: bool = False  # a mark began or ended


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
    now = SeenPoll(poll.at_ms, plan, poll.readings.series, plan.kept_cut.cut(packed))
    aligned = None if before is None else before.as_of(plan, now.shape)
    suspects = _suspects(plan, poll, packed, now, aligned)
    seen = now if before is None or aligned is None else _seen(poll, now, aligned, before, suspects)
    if not suspects and not stored:
        return Judgement(seen)
    old = mark_format.unpack(stored)
    marks = NextMarks(plan, poll, aligned, old).after(suspects, is_current=is_current)
    is_damaged = bool(stored and not old)
    if marks == old and not is_damaged:
        return Judgement(seen)
    is_news = {mark.key for mark in marks} != {mark.key for mark in old}
    return Judgement(seen, marks, is_news)


def _seen(
    poll: PollToJudge,
    now: SeenPoll,
    aligned: SeenPoll,
    before: SeenPoll,
    suspects: Sequence[Suspect],
) -> SeenPoll:
    """Return what the next poll is compared with. `aligned` is the poll before in the shape of now.

    After a poll that lacks a part it is still the one before, for as long as that makes no gap:
    what happens to the missing series meanwhile is then noticed.
    """
    is_recent = poll.at_ms - before.at_ms < (GAP_INTERVALS - 1) * poll.interval_ms
    if not poll.is_whole and is_recent and aligned is not before:
        return before
    if not suspects:
        return now
    plan = now.plan
    if any(suspect.look is Look.STATE for suspect in suspects):
        now = replace(now, kept=plan.with_last_states(aligned.kept, now.kept))
    if plan.has_fallen(aligned.kept, now.kept):
        now = now.with_before_fall(aligned)
    return now


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
