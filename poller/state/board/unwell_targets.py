"""Targets that are not ok, listed without a look at the targets that are.

The scripts of the board keep the list `unwell` beside each status, and `counts` beside both. A list
that differs in length from these counts is damaged, or is that of an earlier release: it is not
used, and the leader makes it anew.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import chain
from typing import Any, NamedTuple

from poller.domain.batched import batched
from poller.domain.record import target_condition
from poller.domain.record.overview import State
from poller.domain.record.target_condition import Condition
from poller.domain.record.target_status import LETTERS
from poller.state.board.board_reader import BoardReader
from poller.state.redis_client import store_errors

#: Statuses that one command reads: other clients wait for less than a millisecond.
_CHUNK = 1_000
_WELL = LETTERS[State.OK]


class Stale(NamedTuple):
    """A target that is not ok, with the end of its last good poll; 0: never."""

    id: int
    ok_ms: int


class UnwellTargets:
    """The list of targets that are not ok. Every method raises StoreError."""

    def __init__(self, board: BoardReader) -> None:
        self._board = board
        self._redis = board.redis
        self._keys = board.keys

    def ids(self, most: int) -> list[int] | None:
        """Return all targets of the list, or None if they are more than that, or the list is
        damaged.
        """
        listed, counted = self._lengths()
        if listed != counted or listed > most:
            return None
        with store_errors(self._redis):
            members: Any = self._redis.zrange(self._keys.unwell, 0, -1)
        return [int(member) for member in members if member.isdigit()]

    def stalest(self, most: int) -> list[Stale]:
        """Return the targets whose last good poll is the longest ago, the stalest first. Targets
        that never had a good poll come last.
        """
        pipe = self._redis.pipeline(transaction=False)
        for low, high in ((1, "+inf"), (0, 0)):
            pipe.zrange(
                self._keys.unwell, low, high, byscore=True, offset=0, num=most, withscores=True
            )
        with store_errors(self._redis):
            once_good, never_good = pipe.execute()
        rows = [*once_good, *never_good][:most]
        return [Stale(int(member), int(ok_ms)) for member, ok_ms in rows if member.isdigit()]

    def older_than(self, instants_ms: Sequence[int]) -> list[int]:
        """Count for each instant the targets whose last good poll ended before it; for the instant
        1 those that never had one.
        """
        pipe = self._redis.pipeline(transaction=False)
        for instant_ms in instants_ms:
            lowest = 0 if instant_ms == 1 else 1
            pipe.zcount(self._keys.unwell, lowest, instant_ms - 1)
        with store_errors(self._redis):
            return [int(number) for number in pipe.execute()]

    def is_sound(self) -> bool:
        """Whether the list is as long as the counts say."""
        listed, counted = self._lengths()
        return listed == counted

    def statuses(self, ids: Sequence[int]) -> dict[int, str]:
        """Return the status of each of these targets that has one, as it is stored."""
        pipe = self._redis.pipeline(transaction=False)
        for chunk in batched(map(str, ids), _CHUNK):
            pipe.hmget(self._keys.status, chunk)
        with store_errors(self._redis):
            pages = pipe.execute()

        texts = chain.from_iterable(pages)
        return {target_id: text for target_id, text in zip(ids, texts, strict=True) if text}

    def counts(self) -> dict[Condition, int]:
        """Return the number of targets by condition, without codes."""
        with store_errors(self._redis):
            counts: Any = self._redis.hgetall(self._keys.counts)
        found: Counter[Condition] = Counter()
        for mark, number in _numbers(counts).items():
            found[target_condition.of_mark(mark)] += number
        return found

    def _lengths(self) -> tuple[int, int]:
        """The length of the list, and the length it must have, at the same instant."""
        pipe = self._redis.pipeline(transaction=True)
        pipe.zcard(self._keys.unwell)
        pipe.hgetall(self._keys.counts)
        with store_errors(self._redis):
            listed, counts = pipe.execute()
        numbers = _numbers(counts)
        return int(listed), sum(number for mark, number in numbers.items() if mark != _WELL)


def _numbers(counts: Mapping[str, str]) -> dict[str, int]:
    """The counts as numbers; one that another program damaged is left out."""
    return {mark: int(text) for mark, text in counts.items() if text.lstrip("-").isdigit()}
