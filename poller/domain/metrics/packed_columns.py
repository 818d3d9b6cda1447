"""Columns of a packed poll, cut out and compared as bytes: no Python float for each value.

A packed poll is little-endian float64, as `reading.pack` makes it.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Final, NamedTuple

_VALUE_BYTES: Final = 8


class PackedColumns:
    """Groups of columns of a shape, each in rising order. No column is in two groups."""

    def __init__(self, *groups: Sequence[int]) -> None:
        runs = [run for group in groups for run in _runs(group)]
        by_column = sorted(runs)
        self._layout = struct.Struct("<" + "".join(_layout(by_column)))
        positions = {run: position for position, run in enumerate(by_column)}
        self._order = [positions[run] for run in runs]

    def cut(self, packed: bytes) -> bytes:
        """Return the values of these columns, group after group."""
        found = self._layout.unpack_from(packed)
        return b"".join([found[position] for position in self._order])


class _Run(NamedTuple):
    """Neighbouring columns."""

    first: int
    end: int


def _runs(columns: Sequence[int]) -> list[_Run]:
    found: list[_Run] = []
    for column in columns:
        if found and found[-1].end == column:
            found[-1] = _Run(found[-1].first, column + 1)
        else:
            found.append(_Run(column, column + 1))
    return found


def _layout(runs: Sequence[_Run]) -> Iterator[str]:
    """Yield the format of each run, after padding for the columns before it."""
    end = 0
    for run in runs:
        yield f"{_VALUE_BYTES * (run.first - end)}x{_VALUE_BYTES * (run.end - run.first)}s"
        end = run.end


def may_have_fallen(before: bytes, now: bytes) -> bool:
    """Whether any value fell, or is of a kind that this function does not compare.

    The bits of floats from 0 on, read as whole numbers, have the order of the floats. All values
    are therefore compared by one subtraction of two long numbers. The sign bit of each value is set
    in the first of them, and is gone in the difference where the value fell.
    """
    signs = _sign_bits(len(now) // _VALUE_BYTES)
    old = int.from_bytes(before, "little")
    new = int.from_bytes(now, "little")
    has_negative = (old | new) & signs != 0
    return has_negative or ((new | signs) - old) & signs != signs


@lru_cache(maxsize=1024)
def _sign_bits(count: int) -> int:
    """Return a number with the sign bits of so many packed values."""
    return int.from_bytes((bytes(_VALUE_BYTES - 1) + b"\x80") * count, "little")
