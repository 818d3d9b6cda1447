"""Which families a target reads, and how often each, as people write it. Every mistake says what there is."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poller import errors
from poller.collectors.routeros.families import DEFAULT, FAMILIES
from poller.domain.inventory import duration

#: Words for several families.
BASIC, ALL = "basic", "all"
_GROUPS: Mapping[str, Iterable[str]] = {BASIC: DEFAULT, ALL: FAMILIES}


def words(value: Any) -> Any:
    """`a, b` as a list; lists as they are."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


def families(names: Sequence[str]) -> tuple[str, ...]:
    """In the order in which they are read. Raises ValueError."""
    for name in names:
        _check(name, [*_GROUPS, *FAMILIES])
    if not names:
        raise ValueError(f"name at least one family; there are: {', '.join([*_GROUPS, *FAMILIES])}")
    chosen = {family for name in names for family in _GROUPS.get(name, (name,))}
    return tuple(family for family in FAMILIES if family in chosen)


def intervals(value: Any) -> Any:
    """`routes=5m, packages=1h` or a mapping, each in seconds. Raises ValueError."""
    if isinstance(value, str):
        value = dict(_pair(word) for word in words(value))
    if not isinstance(value, Mapping):
        return value  # the model says what it wants
    return {_check(name, FAMILIES): _seconds(name, length) for name, length in value.items()}


def in_list(chosen: Sequence[str], *named: str) -> None:
    """Nothing is said about families that are not read. Raises ValueError."""
    for name in named:
        if name not in chosen:
            raise ValueError(
                f"the family {name} is not read: add it to families, or leave this out"
            )


def _check(name: Any, there: Iterable[str]) -> str:
    there = list(there)
    if isinstance(name, str) and name in there:
        return name
    near = difflib.get_close_matches(str(name), there, n=1, cutoff=0.4)
    hint = f"did you mean {near[0]}? " if near else ""
    raise ValueError(f'unknown family "{name}"; {hint}there are: {", ".join(there)}')


def _pair(word: str) -> tuple[str, str]:
    name, equals, length = word.partition("=")
    if not equals:
        raise ValueError(f'"{word}" is no family with its interval; write {word}=5m')
    return name.strip(), length.strip()


def _seconds(name: str, length: Any) -> float:
    try:
        length_ms = duration.parse_ms(length)
        if length_ms > duration.MAX_INTERVAL_MS:
            raise ValueError(f"{name}: at most {duration.format_ms(duration.MAX_INTERVAL_MS)}")
        return length_ms / 1000
    except errors.InvalidInput as error:
        raise ValueError(f"{name}: {error.message}; {error.hint}") from None
