"""Counts the targets on the board after every reconcile, and repairs a board that does not add up.

The moves of the board keep each target in one place. An operator, an eviction or a half-restored
backup may break that.
"""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller.db.inventory import inventory_feed
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.state.board.board_repair import Repair, Repaired
from poller.state.board.moves import Board
from poller.state.board.unwell_targets import UnwellTargets


class BoardAudit:
    """Repairs after two checks in a row that do not add up: one may fall between two moves."""

    def __init__(self, board: Board, engine: Engine) -> None:
        self._board = board
        self._engine = engine
        self._failed_last_time = False

    def check(self, now_ms: int) -> Event | None:
        """Returns the event of a repair, or None if there was none."""
        if self._adds_up():
            self._failed_last_time = False
            self._check_unwell()
            return None
        if not self._failed_last_time:
            self._failed_last_time = True
            return None

        repaired = self._repair(now_ms)
        self._failed_last_time = False
        return _repair_event(repaired, now_ms)

    def _adds_up(self) -> bool:
        """Every target waits or is in flight; a target in flight may have been removed since."""
        sizes = self._board.sizes()
        return sizes.waiting <= sizes.targets <= sizes.waiting + sizes.in_flight

    def _check_unwell(self) -> None:
        """Make the list of unwell targets anew if it is damaged, or a worker of an earlier release
        does not keep it.
        """
        if not UnwellTargets(self._board).is_sound():
            Repair(self._board).recount()

    def _repair(self, now_ms: int) -> Repaired:
        def next_slot(spec: TargetSpec) -> int:
            return slots.next_slot_ms(spec.id, spec.interval_ms, now_ms)

        with inventory_feed.all_specs(self._engine) as fleet:
            return Repair(self._board).repair(fleet.specs, fleet.version, next_slot)


def _repair_event(repaired: Repaired, now_ms: int) -> Event:
    counts = {damage: len(ids) for damage, ids in repaired.targets.items()}
    words = [f"{count:,} {damage}" for damage, count in counts.items()]
    summary = ", ".join(words) or "only sums were wrong"
    return Event(
        at_ms=now_ms,
        kind=Kind.BOARD_REPAIRED,
        message=f"the board was damaged and is repaired: {summary}",
        data=counts,
    )
