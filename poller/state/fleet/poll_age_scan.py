"""The age of the last good poll of every target, read in windows: a request never looks at all.

The windows follow a cursor of Redis over `spec`, so they are a random part of the fleet, and each
target that stays on the board is in one of them. A target can come twice while the fleet grows.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, NamedTuple

from poller.domain.fleet import poll_ages
from poller.domain.fleet.poll_ages import EDGES, OLD_BAND, Excuse, PollAges
from poller.domain.record import target_status
from poller.state.board import record_formats
from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors

#: Targets that one command reads: other clients wait for about a millisecond.
_CHUNK = 1_000


class ScanWindow(NamedTuple):
    """Some targets. The next window begins at the cursor; 0: this was the last one."""

    ages: PollAges
    cursor: int


def read(board: BoardReader, cursor: int, size: int, now_ms: int) -> ScanWindow:
    """Look at about `size` targets. Raises StoreError."""
    parts: list[PollAges] = []
    seen = 0
    while seen < size:
        with store_errors(board.redis):
            reply: Any = board.redis.hscan(board.keys.spec, cursor, count=_CHUNK)
        cursor, specs = reply
        ids = [member for member in specs if member.isdigit()]
        parts.append(_ages(board, ids, [specs[member] for member in ids], now_ms))
        seen += len(specs)
        if cursor == 0:
            break
    return ScanWindow(poll_ages.total(parts), cursor)


def _ages(
    board: BoardReader, members: Sequence[str], specs: Sequence[str], now_ms: int
) -> PollAges:
    if not members:
        return PollAges()
    with store_errors(board.redis):
        texts: Any = board.redis.hmget(board.keys.status, members)

    bands = [0] * (len(EDGES) + 1)
    never = 0
    old: dict[str, str] = {}
    for member, spec, text in zip(members, specs, texts, strict=True):
        ok_ms = target_status.ok_ms(text or "")
        if not ok_ms:
            never += 1
            continue
        interval_ms = target_status.chosen_ms(text) or _interval_ms(spec)
        found = poll_ages.band(now_ms - ok_ms, interval_ms)
        bands[found] += 1
        if found >= OLD_BAND:
            old[member] = text
    excuses = _excuses(board, old, now_ms)
    return PollAges(
        bands=tuple(bands),
        never=never,
        failing=excuses[Excuse.FAILING],
        paused=excuses[Excuse.PAUSED],
        held=excuses[Excuse.HELD],
        late=excuses[Excuse.LATE],
    )


def _interval_ms(spec: str) -> int:
    """The interval of a `spec` record without a check of its other parts: thousands are read."""
    parts = spec.split("|", 2)
    return int(parts[1]) if len(parts) > 2 and parts[1].isdecimal() else 0


def _excuses(board: BoardReader, old: dict[str, str], now_ms: int) -> Counter[Excuse]:
    """Count the old targets by why they are old."""
    found: Counter[Excuse] = Counter()
    if not old:
        return found
    members = list(old)
    pipe = board.redis.pipeline(transaction=False)
    pipe.hmget(board.keys.opened, members)
    pipe.zmscore(board.keys.held, members)
    with store_errors(board.redis):
        openings, held = pipe.execute()
    for text, opening, site in zip(old.values(), openings, held, strict=True):
        if record_formats.parse_opening(opening, now_ms):
            found[Excuse.PAUSED] += 1
        elif site is not None:
            found[Excuse.HELD] += 1
        elif target_status.is_failing(text):
            found[Excuse.FAILING] += 1
        else:
            found[Excuse.LATE] += 1
    return found
