"""One object for equal values: a worker remembers tens of thousands of like devices.

Only short values are shared, and only those in frequent use: nothing grows with the number of
devices, and a hostile device can fill nothing. A value that is not shared is merely not shared.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping
from functools import lru_cache
from types import MappingProxyType
from typing import TypeVar

#: Values and tuples that are kept; the least recently used one gives way.
_VALUES = 32_768
_TUPLES = 4_096
#: Longer values are not shared.
_LONGEST_VALUE = 128
_LONGEST_TUPLE = 8_192

H = TypeVar("H", bound=Hashable)
V = TypeVar("V", bound=int | str | bytes)


def value(given: V) -> V:
    """Return one object for equal texts, octets or numbers of one type."""
    if not isinstance(given, int) and len(given) > _LONGEST_VALUE:
        return given
    shared: V = _value(given)
    return shared


def sequence(given: tuple[H, ...]) -> tuple[H, ...]:
    """Return one object for equal tuples. Their items must be of one type."""
    return given if len(given) > _LONGEST_TUPLE else _sequence(given)


def numbers(given: Mapping[str, int]) -> Mapping[str, int]:
    """Return one read-only mapping for equal ones."""
    items = tuple(given.items())
    return MappingProxyType(dict(given)) if len(items) > _LONGEST_TUPLE else _numbers(items)


@lru_cache(_TUPLES)
def _numbers(items: tuple[tuple[str, int], ...]) -> Mapping[str, int]:
    return MappingProxyType(dict(items))


@lru_cache(_VALUES, typed=True)
def _value(given: V) -> V:
    return given


@lru_cache(_TUPLES)
def _sequence(given: tuple[H, ...]) -> tuple[H, ...]:
    return given
