"""What becomes of a target after a poll: its status, its breaker, and where on the board it waits next."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import NamedTuple

from poller.collectors.staleness_registry import Sources
from poller.domain.failures import circuit_breaker, dead_letter
from poller.domain.record import target_status
from poller.domain.record.target_status import Status
from poller.domain.scheduling import interval, slots
from poller.domain.scheduling.interval import Policy
from poller.settings import Settings, policies
from poller.state.board.board_values import Move, Place, Start, Started
from poller.workers.batch.collection import Collected
from poller.workers.batch.pacing import Pacer
from poller.workers.batch.target_cache import Known

#: A slow retry may come this share earlier, so that a thousand dead letters do not march in step.
SPREAD = 0.1


class Verdict(NamedTuple):
    before: Status
    after: Status
    move: Move
    reason: dead_letter.Reason | None  # why it is parked, if it is
    skipped: int = 0  # slots left out on purpose since its last poll

    @property
    def opened(self) -> bool:
        return bool(self.after.breaker.trips) and not self.before.breaker.trips

    @property
    def closed(self) -> bool:
        return bool(self.before.breaker.trips) and not self.after.breaker.trips


class Judge:
    """One per worker process. Chance comes in here, and nowhere below."""

    def __init__(
        self, settings: Settings, sources: Sources, chance: Callable[[], float] = random.random
    ) -> None:
        self._pacer = Pacer(settings, sources, chance)
        self._rules = policies.breaker_rules(settings)
        self._open_limit_ms = round(settings.deadletter_after_s * 1000)
        self._slow_ms = round(settings.deadletter_retry_s * 1000)
        self._chance = chance

    def judge(self, start: Start, answer: Started, item: Collected, known: Known) -> Verdict:
        before, finished_ms = answer.status, start.now_ms + item.elapsed_ms
        unserved = _unserved(answer, known)
        skipped = unserved if before.breaker.trips or before.parked_ms or answer.postponed else 0
        after = target_status.record(
            before, item.outcome, answer.plan_ms, finished_ms, unserved - skipped
        )
        now_open = self._breaker(before, after, finished_ms)
        reason = dead_letter.reason(
            item.outcome, now_open, finished_ms, self._open_limit_ms, before.reason
        )
        parked_ms = (before.parked_ms or finished_ms) if reason else 0
        if now_open.trips or before.breaker.trips or parked_ms or before.parked_ms:
            after = after._replace(breaker=now_open, parked_ms=parked_ms, reason=reason)
        if known.target.policy is Policy.ADAPTIVE and not now_open.trips:
            after = after._replace(
                decision=self._pacer.decide(before, after, item, known, start.overdue)
            )
        return Verdict(before, after, self._move(start, answer, known, after), reason, skipped)

    def _breaker(self, before: Status, after: Status, finished_ms: int) -> circuit_breaker.Breaker:
        chance = self._chance()
        return circuit_breaker.record(
            before.breaker, after.failures, after.code, finished_ms, self._rules, chance
        )

    def _move(self, start: Start, answer: Started, known: Known, after: Status) -> Move:
        """Parked for a person, on its own grid once its breaker lets it, or at its next slot."""
        target, text = known.target, after.pack()
        if after.parked_ms:
            next_ms = after.finished_ms + round(self._slow_ms * (1 - SPREAD * self._chance()))
            return Move(target.id, next_ms, text, Place.PARKED)
        if after.breaker.trips:
            probe_ms = max(after.finished_ms, after.breaker.probe_ms - 1)
            next_ms = slots.next_slot_ms(target.id, target.interval_ms, probe_ms)
            return Move(target.id, next_ms, text, Place.URGENT)
        if after.decision:
            next_ms = interval.next_ms(answer.plan_ms, after.decision.chosen_ms, after.finished_ms)
        else:
            next_ms = slots.next_slot_ms(target.id, target.interval_ms, after.finished_ms)
        steady = target_status.steady(answer.status, after) and answer.queue == start.queue
        return Move(target.id, next_ms, text, steady=steady)


def _unserved(answer: Started, known: Known) -> int:
    """Slots that went by since its last poll."""
    before, every_ms = answer.status, known.target.interval_ms
    if known.target.policy is Policy.ADAPTIVE and before.decision:
        every_ms = before.decision.chosen_ms
    return slots.missed_slots(before.run_ms, answer.plan_ms, every_ms)
