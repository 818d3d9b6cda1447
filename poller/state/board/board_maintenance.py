"""Work of the leader besides polls: the list of queues, and instants after a clock step."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import chain
from typing import NamedTuple

from poller.state.board.board_reader import BoardReader
from poller.state.board.board_values import QueueChanges
from poller.state.keys import ROUTINE_MARK


class LongestWaits(NamedTuple):
    """Waits for a probe and for a slow retry. A later instant comes from another clock."""

    probe_ms: int = 3_600_000
    park_ms: int = 24 * 3_600_000


class BoardMaintenance:
    """Moves outside the way of a poll. Every method raises StoreError, NotLeader."""

    def __init__(self, board: BoardReader) -> None:
        self._board = board
        self._scripts = board.scripts

    def update_queues(self, leader: str) -> QueueChanges:
        """List every queue that targets need; drop every empty queue that no target needs.

        `place` lists the queues of the targets it places. A queue comes here only if another
        program damaged the list.
        """
        came, went = self._scripts.run_as_leader("update_queues", leader, [ROUTINE_MARK])
        return QueueChanges(came, went)

    def respread(self, leader: str, queue: str, moves: Iterable[tuple[int, int, int]]) -> int:
        """Give due targets another instant. Returns how many moved.

        A move is (target id, current score, new score).
        """
        arguments = [queue, *chain.from_iterable(moves)]
        moved = self._scripts.run_as_leader("respread", leader, arguments)
        return int(moved)

    def renew_leases(self, leader: str, now_ms: int, queue_wait_ms: int, margin_ms: int) -> int:
        """Replace leases that are impossible after a clock step. Returns how many."""
        arguments = [now_ms, queue_wait_ms, margin_ms]
        replaced = self._scripts.run_as_leader("renew_leases", leader, arguments)
        return int(replaced)

    def bring_nearer(
        self, leader: str, now_ms: int, longest: LongestWaits = LongestWaits()
    ) -> Iterator[int]:
        """Shorten waits that are too long after the clock was set back.

        Yields after each page how many targets moved.
        """
        for place, longest_ms in self._places(longest):
            cursor = "0"
            while True:
                arguments = [now_ms, place, longest_ms, cursor]
                cursor, count = self._scripts.run_as_leader("bring_nearer", leader, arguments)
                yield int(count)
                if cursor == "0":
                    break

    def _places(self, longest: LongestWaits) -> Iterator[tuple[str, int | str]]:
        """Each place with its longest wait in ms; "" stands for the interval of each target."""
        for queue in self._board.queues():
            yield f"due:{queue}", ""
            yield f"urgent:{queue}", longest.probe_ms

        yield "parked", longest.park_ms
