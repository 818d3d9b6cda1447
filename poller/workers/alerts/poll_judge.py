"""Judges the polls of a round by the metric rules, before `finish` takes the marks to the board.

What a rule needs of the poll before stays with the target in the cache of targets. A target that
was polled elsewhere meanwhile has an older one: the verdict engine knows what that is worth.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from poller.domain.alerts import judgement
from poller.domain.alerts import mark as mark_format
from poller.domain.alerts.judging import seen_poll
from poller.domain.alerts.judging.plan_maker import plan_of
from poller.domain.alerts.judging.rule_set import RuleSet
from poller.domain.alerts.judging.seen_poll import PollToJudge, SeenPoll
from poller.domain.alerts.judging.watch_plan import Plan
from poller.domain.failures.outcome import Result
from poller.domain.metrics.reading import SeriesSet
from poller.metering import process_metrics
from poller.observability import logs
from poller.state.board.board_values import MarkChange
from poller.workers.alerts.rule_cache import KnownRules, RuleCache
from poller.workers.alerts.stored_before import StoredBefore
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.target_cache import CachedTarget

log = logs.get(__name__)


@dataclass(slots=True)
class TargetWatch:
    """The plan of one target, and the values that rules need of its last poll."""

    known: KnownRules
    rules: RuleSet
    shape: SeriesSet
    plan: Plan
    seen: SeenPoll | None = None


class PollJudge:
    """One per worker process, safe for threads: a target is in one round at a time."""

    def __init__(self, rules: RuleCache, stored: StoredBefore) -> None:
        self._rules = rules
        self._stored = stored
        self._broken: KnownRules | None = None  # rules with which a failure was logged

    @property
    def rules_version(self) -> int:
        """The version of the rules at hand; 0: none yet."""
        return self._rules.version

    def judge_round(
        self, polls: Sequence[FinishedPoll], retried: Collection[int], rules_version: int
    ) -> list[MarkChange]:
        """Return the marks that change. Polls that are retried are not judged.

        While the board tells no version, it may lack the marks too, and nothing is judged. To be
        called before the readings are written: the newest stored poll is then the one before. Never
        raises for a store or for a rule.
        """
        known = self._rules.known(rules_version, time.monotonic())
        if not known.version or not rules_version:
            return []
        is_current = rules_version <= known.version
        changes = []
        for poll, watch in self._watched(polls, retried, known):
            try:
                change = _judge(poll, watch, is_current=is_current)
            except Exception:  # noqa: BLE001  door: a rule must not cost a poll
                self._note_failure(known)
            else:
                if change is not None:
                    changes.append(change)
        return changes

    def _watched(
        self, polls: Sequence[FinishedPoll], retried: Collection[int], known: KnownRules
    ) -> list[tuple[FinishedPoll, TargetWatch]]:
        """Return the polls that rules look at, with what is known of the polls before."""
        found = []
        cold: dict[int, TargetWatch] = {}
        for poll in polls:
            readings = poll.outcome.readings
            if readings is None or poll.target.id in retried:
                continue
            try:
                watch = _watch(poll.cached, readings.series, known)
                if watch.seen is None and judgement.wants_history(watch.plan, readings):
                    cold[poll.target.id] = watch
            except Exception:  # noqa: BLE001  door: a rule must not cost a poll
                self._note_failure(known)
            else:
                if not watch.plan.is_empty or poll.started.marks:
                    found.append((poll, watch))
        if cold:
            self._add_stored(cold)
        return found

    def _add_stored(self, cold: Mapping[int, TargetWatch]) -> None:
        """Give targets that are new to this worker their newest stored poll."""
        stored = self._stored.read({target_id: watch.shape for target_id, watch in cold.items()})
        for target_id, poll in stored.items():
            watch = cold[target_id]
            shape = poll.readings.series
            plan = watch.plan if shape == watch.shape else plan_of(watch.rules, shape)
            watch.seen = seen_poll.seen(plan, poll.at_ms, poll.readings)

    def _note_failure(self, known: KnownRules) -> None:
        """Log the first failure with these rules, and count all."""
        process_metrics.unjudged_polls.add()
        if self._broken is not known:
            self._broken = known
            log.exception("poll_not_judged", rules=known.version)


def _watch(cached: CachedTarget, shape: SeriesSet, known: KnownRules) -> TargetWatch:
    """Return what the rules look at, made anew for other rules or another shape."""
    watch: TargetWatch | None = cached.watch
    if watch is None or watch.known is not known:
        rules = known.choice.choose(cached.target)
        seen = watch.seen if watch is not None else None
        watch = TargetWatch(known, rules, shape, plan_of(rules, shape), seen)
        cached.watch = watch
    elif watch.shape is not shape:
        if watch.shape != shape:
            watch.plan = plan_of(watch.rules, shape)
        watch.shape = shape
    return watch


def _judge(poll: FinishedPoll, watch: TargetWatch, *, is_current: bool) -> MarkChange | None:
    """Judge one poll. Returns the marks of its target if they change."""
    readings = poll.outcome.readings
    assert readings is not None
    target = poll.target
    seen = watch.seen
    if seen is not None and seen.at_ms >= poll.answered_ms:
        seen = None  # stored by another worker meanwhile, or the clock was set
    to_judge = PollToJudge(
        poll.answered_ms,
        readings,
        target.max_ms or target.interval_ms,
        poll.outcome.result is Result.OK,
    )
    judged = judgement.judge(watch.plan, to_judge, seen, poll.started.marks, is_current=is_current)
    watch.seen = judged.seen
    if judged.marks is None:
        return None
    return MarkChange(target.id, mark_format.pack(judged.marks), judged.is_news)
