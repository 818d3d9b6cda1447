"""The targets that are not ok in the order of their last good poll, a window at a time.

The list `unwell` of the board is sorted by that instant. Targets that never had a good poll have
the score 0 there; they are a section of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors


class Rank(NamedTuple):
    """A place in the list: the instant, and among equals the id as the list has it."""

    ok_ms: int
    member: str


def window(board: BoardReader, *, never: bool, after: Rank | None, size: int) -> list[Rank]:
    """Return the next targets of a section. Raises StoreError."""
    first, end = _section(board, never=never)
    if after is not None:
        first = _first_behind(board, after, first, end)
    if first >= end:
        return []
    return _ranks(board, first, min(end, first + size) - 1)


def ranks_of(board: BoardReader, ids: Sequence[int]) -> dict[int, Rank]:
    """Return the places of those of these targets that are in the list. Raises StoreError."""
    if not ids:
        return {}
    with store_errors(board.redis):
        scores: Any = board.redis.zmscore(board.keys.unwell, [str(each) for each in ids])
    return {
        target_id: Rank(int(score), str(target_id))
        for target_id, score in zip(ids, scores, strict=True)
        if score is not None
    }


def _section(board: BoardReader, *, never: bool) -> tuple[int, int]:
    """The first rank of a section, and the one behind its last."""
    pipe = board.redis.pipeline(transaction=False)
    pipe.zcount(board.keys.unwell, "-inf", 0)
    pipe.zcard(board.keys.unwell)
    with store_errors(board.redis):
        never_good, every = pipe.execute()
    return (0, never_good) if never else (never_good, every)


def _first_behind(board: BoardReader, after: Rank, low: int, high: int) -> int:
    """The first rank behind a place, also if its target has left the list. A few short calls."""
    while low < high:
        middle = (low + high) // 2
        found = _ranks(board, middle, middle)
        if found and found[0] <= after:
            low = middle + 1
        else:
            high = middle
    return low


def _ranks(board: BoardReader, first: int, last: int) -> list[Rank]:
    with store_errors(board.redis):
        rows: Any = board.redis.zrange(board.keys.unwell, first, last, withscores=True)
    return [Rank(int(ok_ms), member) for member, ok_ms in rows]
