"""Reschedules targets after downtime or a step of the clock.

A whole fleet is then overdue, or due in hours. Each target is polled once, soon, and the fleet is
spread over time.
"""

from __future__ import annotations

from collections.abc import Iterable

from poller.beat.clock_steps import STEP_MS
from poller.beat.leadership import Leader
from poller.domain.inventory import duration
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.observability import logs
from poller.settings import Settings
from poller.state.board.board_maintenance import BoardMaintenance, LongestWaits
from poller.state.board.moves import Board

log = logs.get(__name__)

#: Targets overdue by less than this are polled at once: a failover, not an outage.
OVERDUE_MS = 15_000


class CatchUp:
    """The leader's rescheduling. Every method raises StoreError, NotLeader."""

    def __init__(self, board: Board, leader: Leader, settings: Settings) -> None:
        self._board = board
        self._maintenance = BoardMaintenance(board)
        self._leader = leader
        self._queue_wait_ms = round(settings.queue_wait_s * 1000)
        self._lease_margin_ms = round(settings.lease_margin_s * 1000)
        self._longest_waits = _longest_waits(settings)

    def after_takeover(self, now_ms: int) -> Event | None:
        """Reschedule when a term starts, since there may have been no leader for a while.

        Returns an event if the clock is behind the last one that a leader stored on the board.
        """
        step_ms = now_ms - self._board.clock_ms()
        if step_ms < -STEP_MS:
            return self.after_clock_step(now_ms, step_ms)
        self.spread(self._board.queues(), now_ms)
        return None

    def after_clock_step(self, now_ms: int, step_ms: int) -> Event:
        """Correct leases and due times, which are instants of the clock before its step."""
        leases = self._maintenance.renew_leases(
            self._leader.token, now_ms, self._queue_wait_ms, self._lease_margin_ms
        )
        if step_ms > 0:
            moved = self.spread(self._board.queues(), now_ms)
        else:
            moved = self._bring_nearer(now_ms)
        return _clock_event(now_ms, step_ms, moved, leases)

    def spread(self, queues: Iterable[str], now_ms: int, unless_at_most: int = 0) -> int:
        """Spread the long overdue targets of each queue over time. Returns how many moved.

        A queue with at most `unless_at_most` of them is left as it is: all are polled at once.
        """
        moved = 0
        for queue in queues:
            if not self._is_few(queue, now_ms, unless_at_most):
                moved += self._spread_queue(queue, now_ms)
            self._leader.made_progress()
        if moved:
            within_s = slots.RESUME_WITHIN_MS // 1000
            log.info("fleet_resumed", targets=moved, within_s=within_s)
        return moved

    def _is_few(self, queue: str, now_ms: int, limit: int) -> bool:
        if not limit:
            return False
        overdue = self._board.waiting(queue, "-inf", now_ms - OVERDUE_MS, limit + 1)
        return len(overdue) <= limit

    def _spread_queue(self, queue: str, now_ms: int) -> int:
        total = 0
        while overdue := self._board.waiting(queue, "-inf", now_ms - OVERDUE_MS):
            moves = []
            for target in overdue:
                resume_ms = slots.resume_ms(target.id, target.interval_ms, now_ms)
                moves.append((target.id, target.at_ms, resume_ms))

            moved = self._maintenance.respread(self._leader.token, queue, moves)
            self._leader.made_progress()
            total += moved
            if not moved:
                break
        return total

    def _bring_nearer(self, now_ms: int) -> int:
        total = 0
        longest = self._longest_waits
        for moved in self._maintenance.bring_nearer(self._leader.token, now_ms, longest):
            self._leader.made_progress()
            total += moved
        return total


def _longest_waits(settings: Settings) -> LongestWaits:
    """The longest waits that the settings allow, and not less than the usual limits."""
    usual = LongestWaits()
    probe_s = max(settings.breaker_base_s, settings.breaker_cap_s, settings.breaker_auth_s)
    return LongestWaits(
        probe_ms=max(usual.probe_ms, round(probe_s * 1000)),
        park_ms=max(usual.park_ms, round(settings.deadletter_retry_s * 1000)),
    )


def _clock_event(now_ms: int, step_ms: int, moved: int, leases: int) -> Event:
    direction = "forward" if step_ms > 0 else "back"
    size = duration.rounded_text(abs(step_ms))
    data = {
        "seconds": round(step_ms / 1000),
        "targets_moved": moved,
        "leases_renewed": leases,
    }
    return Event(
        at_ms=now_ms,
        kind=Kind.CLOCK_MOVED,
        message=f"the clock of Redis was set {direction} by {size}",
        data=data,
    )
