"""Does the board still hold every target? Counted with every reconcile; what somebody else broke is mended.

The board keeps its promise by itself. A person, an eviction or a restored half of a backup may break it.
"""

from __future__ import annotations

from sqlalchemy.engine import Engine

from poller import event_publisher
from poller.db.inventory import inventory_feed
from poller.domain.record.event_kinds import Event, Kind
from poller.domain.scheduling import slots
from poller.state.board.board_repair import Repair
from poller.state.board.moves import Board


class Audit:
    """Acts when two looks in a row do not add up: one may fall between two moves."""

    def __init__(
        self, board: Board, engine: Engine, note: event_publisher.Note = event_publisher.only_log
    ) -> None:
        self._board = board
        self._engine = engine
        self._note = note
        self._suspicious = False

    def look(self, now_ms: int) -> bool:
        """True if the board was repaired."""
        suspicious = not self._adds_up()
        acting, self._suspicious = suspicious and self._suspicious, suspicious
        if not acting:
            return False
        with inventory_feed.all_specs(self._engine) as fleet:
            done = Repair(self._board).repair(
                fleet.specs,
                fleet.version,
                lambda spec: slots.next_slot_ms(spec.id, spec.interval_ms, now_ms),
            )
        data = {word: len(ids) for word, ids in done.targets.items()}
        counted = (
            ", ".join(f"{number:,} {word}" for word, number in data.items())
            or "only sums were wrong"
        )
        self._note(
            Event(
                now_ms,
                Kind.BOARD_REPAIRED,
                f"the board was damaged and is mended: {counted}",
                data=data,
            )
        )
        self._suspicious = False
        return True

    def _adds_up(self) -> bool:
        """Every target waits somewhere or is in flight; what is in flight may have been removed since."""
        known, waiting, in_flight = self._board.sizes()
        return waiting <= known <= waiting + in_flight
