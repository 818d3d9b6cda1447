"""The board as a running batch sees it: while Redis is away a call waits and is repeated.

A lost connection must not cost the leases that a batch holds. A draining worker stops waiting.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import ParamSpec, TypeVar

import redis

from poller import errors
from poller.domain.failures.outcome import Result
from poller.domain.record.event_kinds import Event
from poller.metering import process_metrics
from poller.state.board.board_values import MarkChange, Move, Report, Start
from poller.state.board.moves import EVENTS_LENGTH, Board

REPEAT_S = 0.25

P = ParamSpec("P")
T = TypeVar("T")


class RetryingBoard:
    def __init__(self, board: Board, draining: threading.Event) -> None:
        self._board = board
        self._draining = draining

    def start(
        self, token: str, attempt: int, call: str, margin_ms: int, ids: Sequence[int]
    ) -> Start:
        start = self._repeat(self._board.start, token, attempt, call, margin_ms, ids)
        _count_leases("taken", "refused", [started.result for started in start.targets])
        return start

    def hold(self, token: str, lease_ms: int, ids: Sequence[int]) -> dict[int, Result]:
        held = self._repeat(self._board.hold, token, lease_ms, ids)
        _count_leases("held", "lost", list(held.values()))
        return held

    def finish(
        self,
        token: str,
        moves: Sequence[Move],
        *,
        believed_ms: int,
        stats: Mapping[str, int] | None = None,
        error_texts: Sequence[str] = (),
        queue: str = "",
        reports: Sequence[Report] = (),
        events_length: int = EVENTS_LENGTH,
        marks: Sequence[MarkChange] = (),
    ) -> list[Event]:
        """Return the events that the board published."""
        finished = self._repeat(
            self._board.finish,
            token,
            moves,
            stats=stats,
            errors=error_texts,
            believed_ms=believed_ms,
            queue=queue,
            reports=reports,
            events_length=events_length,
            marks=marks,
        )
        return finished.events

    def _repeat(self, call: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        while True:
            try:
                return call(*args, **kwargs)
            except errors.StoreUnavailable as error:
                process_metrics.leases.add("error")
                if not is_away(error) or self._draining.wait(REPEAT_S):
                    raise


def is_away(error: BaseException) -> bool:
    """Whether Redis did not answer."""
    return isinstance(error.__cause__, redis.ConnectionError | redis.TimeoutError)


def _count_leases(ok: str, refused: str, results: Sequence[Result]) -> None:
    good = results.count(Result.OK)
    process_metrics.leases.add(ok, by=good)
    if good < len(results):
        process_metrics.leases.add(refused, by=len(results) - good)
