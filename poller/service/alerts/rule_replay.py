"""`poller rules test`: history says when a rule would have fired.

Rules of metrics judge the stored polls as workers judge live ones. Other conditions are read from
the events and from the ledger of runs, which have what the platform found at that time.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.alerts.rules import replayed_targets
from poller.db.alerts.rules.replayed_targets import ReplayedTarget
from poller.db.history import polls_of_span
from poller.db.inventory import filter_conditions
from poller.db.record import event_rows, run_pages
from poller.db.record.run_pages import RunSelection
from poller.domain.alerts import judgement, text_template
from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import (
    DeviceUnreachable,
    NoData,
    PlatformTrouble,
    Rule,
    SiteDark,
    TargetFailing,
)
from poller.domain.alerts.rules import would_fire
from poller.domain.alerts.rules.would_fire import Firing, Held, Pair
from poller.domain.alerts.text_template import AlertFacts
from poller.domain.failures.outcome import Result
from poller.domain.inventory.filter_match import FilterMatch
from poller.domain.inventory.target_filter import ANY, TargetFilter
from poller.domain.metrics.reading import ReadingSet
from poller.domain.metrics.series_identity import identity_option
from poller.domain.record.event_kinds import EventFilter, Kind
from poller.presentation import formatting

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Polls of a target that are in memory at a time.
POLLS = 240
MOST_FIRINGS = 1_000
_MOST_EVENTS = 50_000
_MOST_RUNS = 20_000
#: The share of a span that may be without history before that is said.
_YOUNG = 0.1
_GOOD = (Result.OK, Result.PARTIAL)
_DEVICE = Pair(Kind.DEVICE_WENT_DOWN, Kind.DEVICE_RECOVERED)
_TARGET = Pair(Kind.TARGET_FAILED, Kind.TARGET_RECOVERED)
_SITE = Pair(Kind.SITE_OPENED, Kind.SITE_RECOVERED)

#: Passes targets on, and may show how many have passed.
Watch = Callable[[Sequence[ReplayedTarget]], Iterable[ReplayedTarget]]


@dataclass(frozen=True, slots=True)
class Question:
    """A question to history: a rule, a span, fewer devices, and for how long to look."""

    rule: Rule
    since_ms: int
    until_ms: int
    where: TargetFilter = ANY
    seconds: float = 600.0


@dataclass(slots=True)
class Answer:
    """The alerts that there would have been, the first that fires first."""

    firings: list[Firing] = field(default_factory=list)
    looked_at: int = 0  # so many of `noun`
    of: int = 0
    notes: list[str] = field(default_factory=list)
    noun: str = "target"
    begins_ms: int = 0  # the oldest of what was read; 0: nothing was

    def note_begin(self, at_ms: int) -> None:
        """Remember how far back history goes."""
        self.begins_ms = min(at_ms, self.begins_ms or at_ms)

    @property
    def is_complete(self) -> bool:
        return self.looked_at == self.of


def ask(services: Services, question: Question, watch: Watch = iter) -> Answer:
    """Return when the rule would have fired. Raises InvalidInput, StoreError."""
    condition = question.rule.condition
    FilterMatch(question.where)  # a state of today says nothing of last week
    if isinstance(condition, PlatformTrouble):
        raise errors.InvalidInput(
            "when.is: history does not tell the troubles of the platform itself",
            hint="poller status has what is wrong now",
            field="when.is",
        )
    if question.rule.is_judged_by_workers or isinstance(condition, NoData):
        return _by_target(services, question, watch)
    return _by_events(services, question)


def text_of(rule: Rule, firing: Firing) -> str:
    """Return the text that the alert would have had."""
    held = firing.held
    return text_template.render(rule, AlertFacts(held.subject, held.value, held.labels))


def _by_target(services: Services, question: Question, watch: Watch) -> Answer:
    """Look at one target after the other, until the time is over or enough is found."""
    chosen = _targets(services, question)
    answer = Answer(of=len(chosen))
    until_mono = time.monotonic() + question.seconds
    is_metric = question.rule.is_judged_by_workers
    for target in watch(chosen):
        if time.monotonic() >= until_mono or len(answer.firings) >= MOST_FIRINGS:
            break
        judged = _judged if is_metric else _without_data
        held = list(judged(services, question, target, answer))
        answer.firings += _firings(question, held)
        answer.looked_at += 1
    answer.firings.sort(key=lambda each: each.fired_ms)
    answer.notes += _notes(services, question, answer)
    return answer


def _judged(
    services: Services, question: Question, target: ReplayedTarget, answer: Answer
) -> Iterator[Held]:
    """Yield the times in which a rule of metrics held for the series of a target."""
    by = identity_option(target.options)
    polls = _polls(services, question, target.id, answer)
    for span in judgement.replay(question.rule, polls, target.interval_ms, by):
        subject = target.subject(span.series)
        yield Held(subject, span.since_ms, span.until_ms, span.value, span.labels)


def _polls(
    services: Services, question: Question, target_id: int, answer: Answer
) -> Iterator[tuple[int, ReadingSet]]:
    begin_ms = question.since_ms
    while True:
        found = polls_of_span.between(
            services.engine, target_id, begin_ms, question.until_ms, POLLS
        )
        if found:
            answer.note_begin(found[0].at_ms)
        for stored in found:
            yield stored.at_ms, stored.readings
        if len(found) < POLLS:
            return
        begin_ms = found[-1].at_ms + 1


def _without_data(
    services: Services, question: Question, target: ReplayedTarget, answer: Answer
) -> Iterator[Held]:
    """Yield the times in which a target had no good run for too long."""
    condition = question.rule.condition
    assert isinstance(condition, NoData)
    longest_ms = round(condition.intervals * target.longest_interval_ms)
    wanted = RunSelection([target.id], _GOOD, (), question.since_ms, question.until_ms)
    newest_first = run_pages.newest(services.engine, wanted, _MOST_RUNS)
    good_ms = sorted(named.run.plan_ms for named in newest_first)
    if good_ms:
        answer.note_begin(good_ms[0])
    return would_fire.without_polls(
        target.subject(), good_ms, longest_ms, question.since_ms, question.until_ms
    )


def _by_events(services: Services, question: Question) -> Answer:
    """Read the events that begin and end the condition."""
    condition = question.rule.condition
    pair, subjects = _subjects(services, question)
    wanted = EventFilter(tuple(pair), since_ms=question.since_ms, until_ms=question.until_ms)
    newest_first = event_rows.recent(services.engine, wanted, _MOST_EVENTS)
    held = would_fire.held_by_events(reversed(newest_first), pair, subjects, question.since_ms)
    if isinstance(condition, TargetFailing):
        held = would_fire.with_codes(held, condition.codes)
    answer = Answer(_firings(question, held), len(subjects), len(subjects))
    if len(newest_first) == _MOST_EVENTS:
        answer.notes.append(f"only the newest {_MOST_EVENTS:,} events were read; ask for less time")
    if not isinstance(condition, TargetFailing):
        answer.noun = "site" if isinstance(condition, SiteDark) else "device"
    answer.begins_ms = event_rows.oldest_ms(services.engine)
    answer.notes += _age_note(services.settings.events_days, "events", question, answer)
    return answer


def _subjects(services: Services, question: Question) -> tuple[Pair, dict[str, Subject]]:
    """Return the events that tell the condition, and the subjects by the keys of these events."""
    chosen = _targets(services, question)
    if isinstance(question.rule.condition, SiteDark):
        names = sorted({each.site for each in chosen if each.site})
        return _SITE, {f"site:{name}": Subject(site=name) for name in names}
    if isinstance(question.rule.condition, DeviceUnreachable):
        return _DEVICE, {f"device:{each.device_id}": each.device_subject() for each in chosen}
    return _TARGET, {f"target:{each.id}": each.subject() for each in chosen}


def _targets(services: Services, question: Question) -> Sequence[ReplayedTarget]:
    """Return the enabled targets that both filters select."""
    chosen = _ids(services, question.rule.where)
    if question.where != ANY:
        chosen &= _ids(services, question.where)
    return replayed_targets.load(services.engine, chosen)


def _ids(services: Services, wanted: TargetFilter) -> set[int]:
    found = filter_conditions.matching_targets(services.engine, wanted)
    return {target.id for target in found if target.enabled}


def _firings(question: Question, held: Iterable[Held]) -> list[Firing]:
    rule = question.rule
    return would_fire.firings(held, rule.for_ms, rule.keep_ms, question.until_ms)


def _notes(services: Services, question: Question, answer: Answer) -> list[str]:
    notes = []
    if not answer.is_complete:
        notes.append(
            f"looked at {answer.looked_at:,} of {answer.of:,} targets: ask for fewer with where"
        )
    settings = services.settings
    if question.rule.is_judged_by_workers:
        return notes + _age_note(settings.readings_days, "polls", question, answer)
    return notes + _age_note(settings.runs_days, "runs", question, answer)


def _age_note(days: float, what: str, question: Question, answer: Answer) -> list[str]:
    """Say so if history is younger than asked for: it is not kept for longer, or began later."""
    span_ms = question.until_ms - question.since_ms
    if span_ms > days * 86_400_000:
        return [f"{what} are kept for {days:g} days, so the time before was not looked at"]
    if answer.looked_at and not answer.begins_ms:
        return [f"no {what} of that time are stored, so nothing was looked at"]
    if answer.begins_ms > question.since_ms + _YOUNG * span_ms:
        began = formatting.instant(answer.begins_ms)
        return [f"{what} are stored since {began} only, so the time before was not looked at"]
    return []
