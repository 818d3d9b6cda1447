"""Dead letters are tried again because a person says so: at once if they are few, else so many a second."""

from __future__ import annotations

from collections.abc import Sequence

from poller.domain.batched import batched
from poller.state.board import lua_scripts
from poller.state.board.moves import Board
from poller.state.redis_client import store_errors

#: As many as one batch; more are spread, since whatever broke them together should not meet them together.
AT_ONCE = 64
EVERY_MS = 1_000
_CHUNK = 500


def requeue(board: Board, ids: Sequence[int], now_ms: int) -> dict[int, str]:
    """`due`, `inflight`, `barred` or `gone` for each; the first ones are polled at once. Raises StoreUnavailable."""
    script = lua_scripts.load(board.redis, ["requeue"])["requeue"]
    answers: list[str] = []
    for chunk in batched(zip(ids, instants(len(ids), now_ms), strict=True), _CHUNK):
        with store_errors(board.redis):
            answers += script(
                keys=[board.keys.prefix], args=[now_ms, *(word for pair in chunk for word in pair)]
            )
    board.wake("demand")
    return dict(zip(ids, answers, strict=True))


def instants(count: int, now_ms: int) -> list[int]:
    """When each of them falls due: 1 stands for at once."""
    return [
        now_ms + number // AT_ONCE * EVERY_MS if number >= AT_ONCE else 1 for number in range(count)
    ]


def spread_ms(count: int) -> int:
    """How long it takes until the last of them falls due."""
    return max(0, count - 1) // AT_ONCE * EVERY_MS
