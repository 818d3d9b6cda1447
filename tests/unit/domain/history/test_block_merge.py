"""Blocks of a target take every poll once, never overlap, and end at midnight UTC."""

from __future__ import annotations

from array import array
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.history import block_merge
from poller.domain.history.block import Block
from poller.domain.history.block_merge import DAY_MS, joined, place, settled_before
from poller.domain.history.poll_rows import BlockHead, RawPoll

DAY = 20_000 * DAY_MS
MINUTE = 60_000
HOUR = 60 * MINUTE


def poll(at_ms: int, value: float = 0.0) -> RawPoll:
    return RawPoll(at_ms, 1, array("d", [value]).tobytes())


class Target:
    """The blocks of one target, as the table has them."""

    def __init__(self) -> None:
        self.blocks: dict[int, Block] = {}

    def add(self, polls: list[RawPoll]) -> None:
        for head, some in place(self.heads, polls):
            stored = self.blocks.get(head.start_ms) if head else None
            for block in joined(stored, some):
                self.blocks[block.start_ms] = block

    @property
    def heads(self) -> list[BlockHead]:
        return [
            BlockHead(block.start_ms, block.end_ms, block.polls)
            for _, block in sorted(self.blocks.items())
        ]

    @property
    def polls(self) -> list[RawPoll]:
        return [each for _, block in sorted(self.blocks.items()) for each in block.raw_polls()]


instants = st.integers(DAY - 2 * HOUR, DAY + 2 * HOUR).map(lambda at: at - at % MINUTE)


@given(st.lists(st.lists(st.tuples(instants, st.integers(0, 9)), min_size=1), max_size=8))
def test_any_order_of_polls_gives_the_same_polls_in_blocks(
    rounds: list[list[tuple[int, int]]],
) -> None:
    """Late, doubled and mixed polls: each instant once, the first one counts, in order."""
    target = Target()
    expected: dict[int, RawPoll] = {}
    for some in rounds:
        polls = [poll(at_ms, value) for at_ms, value in some]
        for each in sorted(polls):
            expected.setdefault(each.at_ms, each)
        target.add(polls)
    assert target.polls == [expected[at_ms] for at_ms in sorted(expected)]
    heads = target.heads
    assert all(one.end_ms < two.start_ms for one, two in pairwise(heads))
    assert all(head.start_ms // DAY_MS == head.end_ms // DAY_MS for head in heads)
    assert all(head.polls <= block_merge.MOST_POLLS for head in heads)


def day_of_polls(every_ms: int) -> Target:
    """The blocks of a day, made once an hour."""
    target = Target()
    for hour in range(24):
        begin = DAY + hour * HOUR
        target.add([poll(at_ms) for at_ms in range(begin, begin + HOUR, every_ms)])
    return target


def test_a_target_that_is_polled_each_minute_gets_a_block_an_hour() -> None:
    """A block with an hour of polls is not made again when the next hour comes."""
    assert [head.polls for head in day_of_polls(MINUTE).heads] == [60] * 24


def test_a_slow_target_gets_long_blocks() -> None:
    """A target that is polled every 5 minutes has blocks of four hours."""
    assert [head.polls for head in day_of_polls(5 * MINUTE).heads] == [48] * 6


def test_a_fast_target_gets_several_blocks_an_hour() -> None:
    """Blocks of one hour are of about the same length."""
    assert {head.polls for head in day_of_polls(10_000).heads} == {120}


def test_a_few_late_polls_join_the_full_block_before_them() -> None:
    """They make no block of their own."""
    target = day_of_polls(MINUTE)
    target.add([poll(DAY + HOUR - 1), poll(DAY + HOUR - 2)])
    assert [head.polls for head in target.heads][:3] == [62, 60, 60]


def test_a_poll_of_very_many_series_makes_short_blocks() -> None:
    """A block has about a million values at most."""
    wide = array("d", [0.0] * 400_000).tobytes()
    blocks = joined(None, [RawPoll(n, 1, wide) for n in range(5)])
    assert [block.polls for block in blocks] == [1, 2, 2]


def test_targets_take_turns_within_the_hour() -> None:
    """Polls wait at least five minutes, and at most an hour and five minutes."""
    for target_id in range(12):
        for minute in range(120):
            now_ms = DAY + minute * MINUTE
            settled_ms = settled_before(target_id, now_ms)
            assert 5 * MINUTE <= now_ms - settled_ms < HOUR + 5 * MINUTE
    assert len({settled_before(target_id, DAY) for target_id in range(12)}) == 6
