"""What becomes of a target after a poll: its status, its breaker, and its next place on the
board.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import dataclass

from poller.collectors.staleness_registry import Sources
from poller.domain.failures import circuit_breaker, confirmation, dead_letter
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import interval, slots
from poller.domain.scheduling.interval import Policy
from poller.settings import Settings, policies
from poller.state.board.board_values import Move, Place, Start
from poller.workers.batch.adaptive_pace import AdaptivePace
from poller.workers.batch.finished_poll import FinishedPoll
from poller.workers.batch.retries import Retries

#: A poll that ends this much before its slot began by a clock that was a little ahead.
CLOCKS_DIFFER_MS = 5_000
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
        self,
        settings: Settings,
        sources: Sources,
        retries: Retries,
        chance: Callable[[], float] = random.random,
    ) -> None:
        self._retries = retries
        self._confirm_ms = round(settings.breaker_confirm_s * 1000)
        self._pace = AdaptivePace(settings, sources, chance)
        self._rules = policies.breaker_rules(settings)
        self._open_limit_ms = round(settings.deadletter_after_s * 1000)
        self._slow_retry_ms = round(settings.deadletter_retry_s * 1000)
        self._chance = chance

    def judge(self, poll: FinishedPoll, start: Start, shape: int = 0) -> Verdict:
        """Decide what becomes of a target. `shape` was sent and has not ended; 0 is none."""
        before = poll.started.status
        unserved = _unserved_slots(poll)
        was_skipped = before.breaker.trips or before.parked_ms or poll.started.postponed
        skipped = unserved if was_skipped else 0
        missed = unserved - skipped

        after = target_status.record(
            before, poll.outcome, poll.started.plan_ms, poll.finished_ms, missed, shape
        )
        breaker = circuit_breaker.record(
            before.breaker,
            after.failures,
            after.code,
            poll.finished_ms,
            self._rules,
            self._chance(),
            before.ok_ms,
        )
        reason = dead_letter.reason(
            poll.outcome, breaker, poll.finished_ms, self._open_limit_ms, before.reason
        )
        parked_ms = (before.parked_ms or poll.finished_ms) if reason else 0
        if after.failures or before.failures or before.breaker.trips or before.parked_ms:
            confirmed = self._is_confirmed(after, breaker, parked_ms)
            after = after._replace(
                breaker=breaker, parked_ms=parked_ms, reason=reason, confirmed=confirmed
            )
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
            return Move(target.id, _probe_ms(poll, after), status, Place.URGENT)

        served_ms = _served_ms(poll)
        if after.decision:
            chosen_ms = after.decision.chosen_ms
            next_ms = interval.next_ms(poll.started.plan_ms, chosen_ms, served_ms)
        elif after.failures and self._is_confirmed_soon(target, after):
            next_ms = confirmation.next_ms(
                target.id, target.interval_ms, self._confirm_ms, served_ms
            )
        else:
            next_ms = slots.next_slot_ms(target.id, target.interval_ms, served_ms)
        is_same_queue = poll.started.queue == start.queue
        is_steady = is_same_queue and target_status.is_steady(poll.started.status, after)
        return Move(target.id, next_ms, status, steady=is_steady)

    def _is_confirmed(self, after: Status, breaker: Breaker, parked_ms: int) -> bool:
        return confirmation.is_confirmed(
            after.failures, after.code, breaker, bool(parked_ms), self._rules.usual.after
        )

    def _is_confirmed_soon(self, target: PollTarget, after: Status) -> bool:
        """Whether the next poll comes before the next slot, to confirm the failure."""
        is_open_question = not after.confirmed and confirmation.is_soon_worthwhile(after.code)
        is_sooner = self._confirm_ms < target.interval_ms
        return is_open_question and is_sooner and self._retries.affords_confirmation(target)


def _served_ms(poll: FinishedPoll) -> int:
    """Return the instant after which the next slot is looked for: the end of the poll.

    It is the slot of the poll if the poll ended a moment before it: a slot is served once, and two
    runs with one plan time would share a row of the ledger. A plan time that is far ahead comes
    from a clock that was set since.
    """
    plan_ms, finished_ms = poll.started.plan_ms, poll.finished_ms
    is_early = finished_ms < plan_ms < finished_ms + CLOCKS_DIFFER_MS
    return plan_ms if is_early else finished_ms


def _probe_ms(poll: FinishedPoll, after: Status) -> int:
    """Return the last slot within the breaker's wait, at least the next slot."""
    target = poll.target
    next_ms = slots.next_slot_ms(target.id, target.interval_ms, _served_ms(poll))
    latest_ms = slots.latest_slot_ms(target.id, target.interval_ms, after.breaker.probe_ms)
    return max(next_ms, latest_ms)


def _unserved_slots(poll: FinishedPoll) -> int:
    """Count the slots between the last run and this one."""
    before = poll.started.status
    interval_ms = poll.target.interval_ms
    if poll.target.policy is Policy.ADAPTIVE and before.decision:
        interval_ms = before.decision.chosen_ms
    return slots.missed_slots(before.run_ms, poll.started.plan_ms, interval_ms)
