"""Which block takes which poll, and how large a block grows.

Blocks of a target never overlap and none crosses 00:00 UTC, so that a day of history can be
dropped as a whole. A poll that is in a block already stays as it is there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from poller.domain.history.block import Block, distinct, from_polls
from poller.domain.history.poll_rows import BlockHead, RawPoll

DAY_MS = 86_400_000
#: A block with fewer polls takes those that follow it: a slow target gets long blocks.
OPEN_POLLS = 48
#: Polls of a block at most.
MOST_POLLS = 120
#: Up to this many polls between two full blocks join the first of them: they came late.
FEW_POLLS = 8
#: Values of a block at most, about: a poll of very many series makes short blocks.
MOST_VALUES = 1_000_000


#: Polls wait this long in `readings`, for late ones to come.
GRACE_MS = 300_000
_HOUR_MS = 3_600_000
#: Targets come to an end of their hour in turn, so that the work is spread.
_TURNS = 6


class Placement(NamedTuple):
    """Polls that belong together, and the stored block that they join, if any."""

    head: BlockHead | None
    polls: list[RawPoll]


def day_of(at_ms: int) -> int:
    """The start of the UTC day of an instant."""
    return at_ms - at_ms % DAY_MS


def settled_before(target_id: int, now_ms: int) -> int:
    """Return the instant before which polls of a target are moved into blocks.

    It moves on once an hour, for one target in six at a time.
    """
    turn_ms = target_id % _TURNS * (_HOUR_MS // _TURNS)
    ended = (now_ms - GRACE_MS - turn_ms) // _HOUR_MS
    return ended * _HOUR_MS + turn_ms


def place(heads: Sequence[BlockHead], polls: Iterable[RawPoll]) -> list[Placement]:
    """Return which stored block each poll joins, or that it makes a new one.

    `heads` are in order of time. They need to be all those between the day of the first poll and
    the last poll.
    """
    starts = [head.start_ms for head in heads]
    in_order = sorted(polls)
    if _follows_all(heads, in_order):
        return [Placement(None, in_order)]
    groups: dict[tuple[int, int, bool], list[RawPoll]] = {}
    for poll in in_order:
        day_ms = day_of(poll.at_ms)
        before = bisect_right(starts, poll.at_ms) - 1
        if before >= 0 and day_of(starts[before]) != day_ms:
            before = -1
        is_inside = before >= 0 and poll.at_ms <= heads[before].end_ms
        groups.setdefault((day_ms, before, is_inside), []).append(poll)
    return _merged(heads, groups)


def _follows_all(heads: Sequence[BlockHead], in_order: Sequence[RawPoll]) -> bool:
    """Whether all polls make a new block after full ones: nearly always so."""
    first_ms, last_ms = in_order[0].at_ms, in_order[-1].at_ms
    if day_of(first_ms) != day_of(last_ms):
        return False
    if not heads:
        return True
    last = heads[-1]
    return last.end_ms < first_ms and not _takes(last, len(in_order))


def _merged(
    heads: Sequence[BlockHead], groups: dict[tuple[int, int, bool], list[RawPoll]]
) -> list[Placement]:
    placements: dict[int, Placement] = {}
    new = []
    for (_, before, is_inside), polls in groups.items():
        if before < 0:
            new.append(Placement(None, polls))
        elif is_inside or _takes(heads[before], len(polls)):
            placed = placements.setdefault(before, Placement(heads[before], []))
            placed.polls.extend(polls)
        else:
            new.append(Placement(None, polls))
    return [*placements.values(), *new]


def _takes(head: BlockHead, polls: int) -> bool:
    if head.polls < OPEN_POLLS:
        return True
    return polls <= FEW_POLLS and head.polls + polls <= MOST_POLLS


def joined(stored: Block | None, polls: Iterable[RawPoll]) -> list[Block]:
    """The blocks of a stored block and new polls together. The stored one of two polls counts."""
    known = stored.raw_polls() if stored else ()
    return list(_cut(distinct(chain(known, polls))))


def _cut(polls: list[RawPoll]) -> Iterator[Block]:
    """Cut polls, oldest first, into blocks of about the same length."""
    largest = max(len(poll.packed) for poll in polls) // 8
    most = max(1, min(MOST_POLLS, MOST_VALUES // max(1, largest)))
    parts = -(-len(polls) // most)
    for part in range(parts):
        begin = part * len(polls) // parts
        end = (part + 1) * len(polls) // parts
        yield from_polls(polls[begin:end])
