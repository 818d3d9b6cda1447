"""The marks of a target from one poll to the next: those that go on, and new ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import NamedTuple

from poller.domain.alerts.judging.rule_check import RuleCheck
from poller.domain.alerts.judging.rule_set import Look, MetricRule
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.series_names import names_of
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.alerts.mark import MOST_MARKS, Mark, plain

#: The instant and the value of a mark that goes on are brought up to date this often.
REFRESH_MS = 60_000
#: A series that whole polls lack for so long has gone, and its marks with it.
ABSENT_MS = 15 * 60_000


class Suspect(NamedTuple):
    """A series that a rule may hold for, by its place among those that are looked at."""

    look: Look
    place: int


class NextMarks:
    """The marks after one poll."""

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
                    labels = {
                        plain(name): plain(said) for name, said in self._names.series[column].labels
                    }
                    yield Mark(rule.id, text, at_ms, at_ms, found.value, labels)
