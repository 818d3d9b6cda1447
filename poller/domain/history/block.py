"""A block: polls of one target over a span, by columns. `block_codec` makes bytes of it.

A block may hold polls of several shapes. Polls of one shape are one segment, whatever lies between
them in time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from poller.domain.history.poll_rows import RawPoll

Instants = NDArray[np.int64]
Values = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Segment:
    """Polls of one shape: `at_ms` [polls] ascending, `values` [series, polls]."""

    shape_id: int
    at_ms: Instants
    values: Values

    @property
    def polls(self) -> int:
        return len(self.at_ms)

    @property
    def series(self) -> int:
        return len(self.values)


@dataclass(frozen=True, eq=False)
class Block:
    """Polls of one target. No two have the same instant."""

    segments: tuple[Segment, ...]

    @cached_property
    def start_ms(self) -> int:
        """The instant of the first poll."""
        return min(int(segment.at_ms[0]) for segment in self.segments)

    @cached_property
    def end_ms(self) -> int:
        """The instant of the last poll."""
        return max(int(segment.at_ms[-1]) for segment in self.segments)

    @cached_property
    def polls(self) -> int:
        """The number of polls."""
        return sum(segment.polls for segment in self.segments)

    def instants(self) -> Iterator[int]:
        """The instant of every poll."""
        for segment in self.segments:
            yield from segment.at_ms.tolist()

    def raw_polls(self) -> Iterator[RawPoll]:
        """Every poll as a row, oldest first."""
        found: list[RawPoll] = []
        for segment in self.segments:
            rows = np.ascontiguousarray(segment.values.T, dtype="<f8")
            for at_ms, row in zip(segment.at_ms.tolist(), rows, strict=True):
                found.append(RawPoll(at_ms, segment.shape_id, row.tobytes()))
        yield from sorted(found)


def from_polls(polls: Iterable[RawPoll]) -> Block:
    """The block of these polls, in any order. The first of two with the same instant counts."""
    by_shape: dict[tuple[int, int], list[RawPoll]] = {}
    for poll in distinct(polls):
        by_shape.setdefault((poll.shape_id, len(poll.packed)), []).append(poll)
    return Block(tuple(map(_segment, by_shape.values())))


def distinct(polls: Iterable[RawPoll]) -> list[RawPoll]:
    """Return polls oldest first; the first of two with the same instant."""
    by_instant: dict[int, RawPoll] = {}
    for poll in polls:
        by_instant.setdefault(poll.at_ms, poll)
    return [by_instant[at_ms] for at_ms in sorted(by_instant)]


def _segment(polls: list[RawPoll]) -> Segment:
    """The segment of polls of one shape, oldest first."""
    at_ms = np.array([poll.at_ms for poll in polls], dtype=np.int64)
    flat = np.frombuffer(b"".join(poll.packed for poll in polls), dtype="<f8")
    rows = flat.reshape(len(polls), -1)
    return Segment(polls[0].shape_id, at_ms, np.ascontiguousarray(rows.T, dtype=np.float64))


__all__ = ["Block", "Instants", "RawPoll", "Segment", "Values", "from_polls"]
