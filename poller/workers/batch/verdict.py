"""What becomes of a target after a poll: its status, its breaker, and its next place on the
board.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.staleness_registry import Sources
from poller.domain.failures import circuit_breaker, dead_letter
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import interval, slots
from poller.domain.scheduling.interval import Policy
from poller.settings import Settings, policies
from poller.state.board.board_values import Move, Place, Start
from poller.workers.batch.adaptive_pace import AdaptivePace
from poller.workers.batch.finished_poll import FinishedPoll

#: A slow retry comes up to this share early, so that a thousand dead letters spread out.
EARLY_SHARE = 0.1


@dataclass(frozen=True, slots=True)
class Verdict:
    """The decision for one target after one poll."""

    target: PollTarget
    before: Status
    after: Status
    move: Move
    reason: dead_letter.Reason | None  # why the target is parked, if it is
    skipped: int  # slots that a breaker, a dead letter or a person left out

    @property
    def opened(self) -> bool:
        return bool(self.after.breaker.trips) and not self.before.breaker.trips

    @property
    def closed(self) -> bool:
        return bool(self.before.breaker.trips) and not self.after.breaker.trips


class Judge:
    """One per worker process. Randomness enters the decisions here."""

    def __init__(
        self, settings: Settings, sources: Sources, chance: Callable[[], float] = random.random
    ) -> None:
        self._pace = AdaptivePace(settings, sources, chance)
        self._rules = policies.breaker_rules(settings)
        self._open_limit_ms = round(settings.deadletter_after_s * 1000)
        self._slow_retry_ms = round(settings.deadletter_retry_s * 1000)
        self._chance = chance

    def judge(self, poll: FinishedPoll, start: Start) -> Verdict:
        before = poll.started.status
        unserved = _unserved_slots(poll)
        was_skipped = before.breaker.trips or before.parked_ms or poll.started.postponed
        skipped = unserved if was_skipped else 0
        missed = unserved - skipped

        after = target_status.record(
            before, poll.outcome, poll.started.plan_ms, poll.finished_ms, missed
        )
        breaker = circuit_breaker.record(
            before.breaker,
            after.failures,
            after.code,
            poll.finished_ms,
            self._rules,
            self._chance(),
        )
        reason = dead_letter.reason(
            poll.outcome, breaker, poll.finished_ms, self._open_limit_ms, before.reason
        )
        parked_ms = (before.parked_ms or poll.finished_ms) if reason else 0
        if breaker.trips or before.breaker.trips or parked_ms or before.parked_ms:
            after = after._replace(breaker=breaker, parked_ms=parked_ms, reason=reason)
        if poll.target.policy is Policy.ADAPTIVE and not breaker.trips:
            after = after._replace(decision=self._pace.decide(poll, after, start.overdue))

        move = self._move(poll, start, after)
        return Verdict(poll.target, before, after, move, reason, skipped)

    def _move(self, poll: FinishedPoll, start: Start, after: Status) -> Move:
        """Choose the next place: parked, urgent at the breaker's probe, or due at the next slot."""
        target = poll.target
        status = after.pack()
        if after.parked_ms:
            wait_ms = round(self._slow_retry_ms * (1 - EARLY_SHARE * self._chance()))
            return Move(target.id, after.finished_ms + wait_ms, status, Place.PARKED)
        if after.breaker.trips:
            probe_ms = max(after.finished_ms, after.breaker.probe_ms - 1)
            next_ms = slots.next_slot_ms(target.id, target.interval_ms, probe_ms)
            return Move(target.id, next_ms, status, Place.URGENT)

        if after.decision:
            chosen_ms = after.decision.chosen_ms
            next_ms = interval.next_ms(poll.started.plan_ms, chosen_ms, after.finished_ms)
        else:
            next_ms = slots.next_slot_ms(target.id, target.interval_ms, after.finished_ms)
        is_same_queue = poll.started.queue == start.queue
        is_steady = is_same_queue and target_status.is_steady(poll.started.status, after)
        return Move(target.id, next_ms, status, steady=is_steady)


def _unserved_slots(poll: FinishedPoll) -> int:
    """Count the slots between the last run and this one."""
    before = poll.started.status
    interval_ms = poll.target.interval_ms
    if poll.target.policy is Policy.ADAPTIVE and before.decision:
        interval_ms = before.decision.chosen_ms
    return slots.missed_slots(before.run_ms, poll.started.plan_ms, interval_ms)
