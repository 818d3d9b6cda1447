"""Which status codes are fine? `200-399`, `200,401`: texts to ranges."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

_RANGE = re.compile(r"([1-5][0-9]{2})(?:-([1-5][0-9]{2}))?")


@lru_cache(maxsize=256)
def ranges(words: Sequence[str]) -> tuple[range, ...]:
    """Raises ValueError, naming the word."""
    return tuple(_range(word) for word in words)


def _range(word: str) -> range:
    found = _RANGE.fullmatch(word)
    if not found:
        raise ValueError(f'"{word}" is no status code; write 200, or 200-299')
    first, last = int(found[1]), int(found[2] or found[1])
    if last < first:
        raise ValueError(f'"{word}" is empty: the first code is above the second')
    return range(first, last + 1)


def fits(status: int, words: Sequence[str]) -> bool:
    return any(status in each for each in ranges(words))
