"""Polls on demand for devices whose state decides on an alert, within a limit."""

from __future__ import annotations

from collections.abc import Collection

from poller.beat.alerts.device_facts import DeviceFacts
from poller.domain.batched import batched
from poller.state.board.moves import Board

#: The pause before the same device is polled on demand again.
AGAIN_MS = 5_000
#: Devices of one pass; the others follow a second later.
MOST_AT_ONCE = 200
_CHUNK = 500


class ParentPolls:
    """Remembers whom it asked. Raises StoreError."""

    def __init__(self, board: Board, facts: DeviceFacts) -> None:
        self._board = board
        self._facts = facts
        self._asked_ms: dict[int, int] = {}

    def ask(self, device_ids: Collection[int], now_ms: int) -> int:
        """Demand a poll of each device that was not asked a moment ago. Returns the number of
        targets. Targets that an operator keeps open, or that wait for a dark site, are left alone.
        """
        since_ms = now_ms - AGAIN_MS
        self._asked_ms = {
            each: at_ms for each, at_ms in self._asked_ms.items() if since_ms < at_ms <= now_ms
        }
        chosen = sorted(set(device_ids) - self._asked_ms.keys())[:MOST_AT_ONCE]
        targets = self._facts.polled_targets(chosen)
        asked = 0
        for chunk in batched(targets, _CHUNK):
            left_alone = self._board.left_alone(chunk, now_ms)
            wanted = [each for each in chunk if each not in left_alone]
            if wanted:
                self._board.demand(wanted)
                asked += len(wanted)
        self._asked_ms |= dict.fromkeys(chosen, now_ms)
        return asked
