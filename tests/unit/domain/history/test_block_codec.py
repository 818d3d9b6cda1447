"""Blocks keep every bit of every poll, and refuse bytes that are not theirs."""

from __future__ import annotations

import struct
import tracemalloc
from array import array

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from poller.domain.history import block_codec
from poller.domain.history.block import Block, RawPoll, from_polls
from poller.domain.history.block_codec import BlockError, decode, encode

START_MS = 1_760_000_000_000
NAN_WITH_PAYLOAD = struct.unpack("<d", struct.pack("<Q", 0xFFF0_0000_DEAD_BEEF))[0]

#: Any 64 bits as a float: NaNs with payloads, both zeros, infinities, denormals.
any_bits = st.integers(0, 2**64 - 1)
whole = st.one_of(st.integers(-(2**53) - 2, 2**53 + 2), st.integers(0, 2**32 - 1)).map(float)
decimals = st.tuples(st.integers(-(10**9), 10**9), st.integers(0, 9)).map(
    lambda t: t[0] / 10 ** t[1]
)
special = st.sampled_from([0.0, -0.0, float("inf"), float("-inf"), float("nan"), 2.0**53, 1e308])


def bits(value: float) -> int:
    return int(struct.unpack("<Q", struct.pack("<d", value))[0])


value_bits = st.one_of(any_bits, st.one_of(whole, decimals, special).map(bits))


@st.composite
def counters(draw: st.DrawFn, polls: int) -> list[int]:
    """The bits of a counter of 32 or 64 bits that grows, wraps and starts over."""
    limit = draw(st.sampled_from([2**32, 2**53]))
    at = draw(st.integers(0, limit - 1))
    column = []
    for _ in range(polls):
        column.append(bits(float(at)))
        at = (at + draw(st.integers(0, 2**34))) % limit
        if draw(st.integers(0, 20)) == 0:
            at = 0
    return column


@st.composite
def polls_of_target(draw: st.DrawFn) -> list[RawPoll]:
    """Polls of a few shapes, in any order, some instants twice."""
    found: list[RawPoll] = []
    for shape_id in draw(st.lists(st.integers(-(2**63), 2**63 - 1), min_size=1, max_size=3)):
        polls = draw(st.integers(1, 12))
        series = draw(st.integers(0, 5))
        columns = [
            draw(
                st.one_of(
                    counters(polls),
                    st.lists(value_bits, min_size=polls, max_size=polls),
                    value_bits.map(lambda one, n=polls: [one] * n),
                )
            )
            for _ in range(series)
        ]
        for row in range(polls):
            at_ms = START_MS + draw(st.integers(-(10**9), 10**9))
            packed = b"".join(struct.pack("<Q", column[row]) for column in columns)
            found.append(RawPoll(at_ms, shape_id, packed))
    sizes: dict[int, int] = {}
    found = [p for p in found if sizes.setdefault(p.shape_id, len(p.packed)) == len(p.packed)]
    return draw(st.permutations(found))


def expected(polls: list[RawPoll]) -> list[RawPoll]:
    by_instant: dict[int, RawPoll] = {}
    for poll in polls:
        by_instant.setdefault(poll.at_ms, poll)
    return [by_instant[at_ms] for at_ms in sorted(by_instant)]


def poll(at_ms: int, values: list[float], shape_id: int = 1) -> RawPoll:
    return RawPoll(at_ms, shape_id, array("d", values).tobytes())


@settings(max_examples=200, deadline=None)
@given(polls_of_target())
@example([poll(START_MS, [])])
@example([poll(START_MS, [1.5]), poll(START_MS + 1, [1.5])])
@example([poll(START_MS, [NAN_WITH_PAYLOAD]), poll(START_MS + 1, [-0.0])])
@example([poll(-(2**62), [0.0]), poll(2**62, [2.0**53])])
def test_every_poll_comes_back_to_the_bit(polls: list[RawPoll]) -> None:
    """Whatever floats and instants: the same bits, oldest first, the first of two instants."""
    restored = decode(encode(from_polls(polls)))
    assert list(restored.raw_polls()) == expected(polls)


def test_a_counter_of_32_bits_beside_its_64_bits_takes_next_to_nothing() -> None:
    """The low 32 bits of another column are stored as such, also when they wrap many times."""
    rng = np.random.default_rng(1)
    wide = np.cumsum(rng.integers(0, 2**34, 60)).astype(float)
    alone = [poll(START_MS + n * 60_000, [value]) for n, value in enumerate(wide)]
    both = [poll(START_MS + n * 60_000, [value % 2**32, value]) for n, value in enumerate(wide)]
    assert len(encode(from_polls(both))) < len(encode(from_polls(alone))) + 30
    assert list(decode(encode(from_polls(both))).raw_polls()) == both


def test_an_hour_of_an_idle_switch_takes_some_hundred_bytes() -> None:
    """Constants and steady counters cost next to nothing for each poll."""
    values = [float(n) for n in range(150)]
    polls = [poll(START_MS + n * 60_000, [*values, 100.0 * n]) for n in range(60)]
    assert len(encode(from_polls(polls))) < 500


def block_bytes() -> bytes:
    rng = np.random.default_rng(2)
    polls = [poll(START_MS + n * 60_000, [float(n), *rng.random(5)]) for n in range(40)]
    return encode(from_polls([*polls, poll(START_MS + 1, [1.0], shape_id=2)]))


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_bytes_are_refused_or_give_a_block(data: st.DataObject) -> None:
    """Flipped, cut and added bytes raise BlockError and nothing else."""
    original = bytearray(block_bytes())
    for _ in range(data.draw(st.integers(1, 4))):
        original[data.draw(st.integers(0, len(original) - 1))] = data.draw(st.integers(0, 255))
    cut = bytes(original[: data.draw(st.integers(0, len(original)))])
    for damaged in (bytes(original), cut, cut + b"\x00"):
        try:
            found = decode(damaged)
        except BlockError:
            continue
        assert isinstance(found, Block)


@settings(max_examples=300, deadline=None)
@given(st.data())
def test_damaged_fields_are_refused_or_give_a_block(data: st.DataObject) -> None:
    """Fields that lie about counts, forms and widths raise BlockError and nothing else."""
    fields = bytearray(block_codec._decompressed(block_bytes()))
    for _ in range(data.draw(st.integers(1, 4))):
        fields[data.draw(st.integers(0, len(fields) - 1))] = data.draw(st.integers(0, 255))
    size = data.draw(st.integers(0, len(fields)))
    for damaged in (bytes(fields), bytes(fields[:size])):
        try:
            found = decode(block_codec._framed(damaged))
        except BlockError:
            continue
        assert isinstance(found, Block)


@pytest.mark.parametrize("counts", [(2**32 - 1, 1), (1, 2**32 - 1), (2**20, 2**20), (0, 2**30)])
def test_a_small_text_never_makes_much_memory(counts: tuple[int, int]) -> None:
    """A block that claims very many values is refused before memory is made for them."""
    fields = struct.pack("<Iq2I", 1, 7, *counts) + bytes(1_000)
    tracemalloc.start()
    with pytest.raises(BlockError):
        decode(block_codec._framed(fields))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 * 2**20


def test_a_bomb_is_refused() -> None:
    """Bytes that decompress to more than they say are refused."""
    data = bytearray(block_codec._framed(bytes(10_000_000)))
    data[1:5] = struct.pack("<I", 100)
    with pytest.raises(BlockError, match="damaged"):
        decode(bytes(data))
    data[1:5] = struct.pack("<I", 2**32 - 1)
    with pytest.raises(BlockError, match="too large"):
        decode(bytes(data))


def test_a_later_version_is_named() -> None:
    """A block of a newer program says so instead of giving wrong numbers."""
    with pytest.raises(BlockError, match="version 9"):
        decode(b"\x09" + block_bytes()[1:])
