"""The leader's moves of once a second, which travel with its other commands of a round."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from redis.client import Pipeline

from poller import errors
from poller.state.board import moves
from poller.state.board.board_values import NotLeader, QueueChanges, Reaped
from poller.state.board.lua_scripts import Scripts
from poller.state.keys import ROUTINE_MARK

#: Targets that one call moves.
PAGE = 1000


@dataclass(frozen=True, slots=True)
class Kept:
    """The result of the housekeeping. Leases reaped before a `failure` are still lost."""

    reaped: Sequence[Reaped] = ()
    queues: QueueChanges = field(default_factory=lambda: QueueChanges([], []))
    failure: Exception | None = None


class Housekeeping:
    """Reaps lost leases, unparks dead letters due for a retry and updates the list of queues.

    `now_ms` is the instant that the leader believes; if the server's clock differs by more than
    `step_ms`, it was set, and no target moves before the leader has corrected the board.
    """

    def __init__(self, scripts: Scripts, leader: str, now_ms: int, step_ms: int) -> None:
        self._scripts = scripts
        self._calls: dict[str, list[Any]] = {
            "reap": [leader, now_ms, PAGE, step_ms],
            "unpark": [leader, now_ms, PAGE, step_ms],
            "update_queues": [leader, ROUTINE_MARK],
        }

    def add_to(self, pipe: Pipeline) -> None:
        """Add the scripts to the commands of a round."""
        for name, arguments in self._calls.items():
            self._scripts.add(pipe, name, arguments)

    def read(self, replies: Iterator[Any]) -> Kept:
        """Read the replies to the scripts. Raises nothing: a failure is in the result."""
        kept = Kept()
        for name, arguments in self._calls.items():
            try:
                reply = self._scripts.reply(name, arguments, next(replies))
            except (errors.StoreError, NotLeader) as error:
                return Kept(kept.reaped, failure=error)
            if name == "reap":
                kept = Kept(moves.reaped(reply))
            elif name == "update_queues":
                kept = Kept(kept.reaped, QueueChanges(*reply))
        return kept
