"""Things that a sink makes of a shape once, such as encoded labels, within a limit of series."""

from __future__ import annotations

from collections.abc import Hashable
from typing import Generic, TypeVar

#: Series of all shapes together; about 100 bytes each.
MAX_SERIES = 1_000_000

T = TypeVar("T")


class ShapeCache(Generic[T]):
    """Not safe for threads: the writer of the sink uses it."""

    def __init__(self, max_series: int = MAX_SERIES) -> None:
        self._max_series = max_series
        self._series = 0
        self._made: dict[Hashable, T] = {}

    def get(self, key: Hashable) -> T | None:
        return self._made.get(key)

    def put(self, key: Hashable, made: T, series: int) -> None:
        """Store what was made of a shape. A full cache starts anew."""
        if self._series + series > self._max_series:
            self._made.clear()
            self._series = 0
        self._made[key] = made
        self._series += series
