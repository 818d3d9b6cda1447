"""`itertools.batched` for Python 3.11."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice
from typing import TypeVar

T = TypeVar("T")


def batched(items: Iterable[T], size: int) -> Iterator[tuple[T, ...]]:
    """Tuples of `size` items; the last may be shorter."""
    iterator = iter(items)
    while chunk := tuple(islice(iterator, size)):
        yield chunk
