"""Parses the families a target reads and the interval of each. Errors list the valid names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from poller import errors
from poller.collectors.routeros.families import DEFAULT, FAMILIES
from poller.domain.inventory import duration

#: Names of groups of families.
BASIC = "basic"
ALL = "all"
_GROUPS: Mapping[str, Iterable[str]] = {BASIC: DEFAULT, ALL: FAMILIES}


def split_words(value: Any) -> Any:
    """Split `a, b` into words; return any other value unchanged."""
    if isinstance(value, str):
        return tuple(word.strip() for word in value.split(",") if word.strip())
    return value


def families(names: Sequence[str]) -> tuple[str, ...]:
    """Expand groups and return the families in the order they are read. Raises ValueError."""
    valid = [*_GROUPS, *FAMILIES]
    if not names:
        raise ValueError(f"name at least one family; there are: {', '.join(valid)}")
    selected: set[str] = set()
    for name in names:
        _check_name(name, valid)
        selected.update(_GROUPS.get(name, (name,)))
    return tuple(family for family in FAMILIES if family in selected)


def intervals(value: Any) -> Any:
    """Return the seconds of `routes=5m, packages=1h`, or of a mapping. Raises ValueError."""
    if isinstance(value, str):
        value = dict(_split_pair(word) for word in split_words(value))
    if not isinstance(value, Mapping):
        return value  # pydantic reports the wrong type
    seconds = {}
    for name, length in value.items():
        seconds[_check_name(name, FAMILIES)] = _parse_seconds(name, length)
    return seconds


def check_selected(selected: Sequence[str], *names: str) -> None:
    """Refuse an option about a family that is not read. Raises ValueError."""
    for name in names:
        if name not in selected:
            raise ValueError(
                f"the family {name} is not read: add it to families, or leave this out"
            )


def _check_name(name: Any, valid: Iterable[str]) -> str:
    valid = list(valid)
    if isinstance(name, str) and name in valid:
        return name
    nearest = difflib.get_close_matches(str(name), valid, n=1, cutoff=0.4)
    hint = f"did you mean {nearest[0]}? " if nearest else ""
    raise ValueError(f'unknown family "{name}"; {hint}there are: {", ".join(valid)}')


def _split_pair(word: str) -> tuple[str, str]:
    name, equals, length = word.partition("=")
    if not equals:
        raise ValueError(f'"{word}" is no family with its interval; write {word}=5m')
    return name.strip(), length.strip()


def _parse_seconds(name: str, length: Any) -> float:
    try:
        length_ms = duration.parse_ms(length)
    except errors.InvalidInput as error:
        raise ValueError(f"{name}: {error.message}; {error.hint}") from None
    if length_ms > duration.MAX_INTERVAL_MS:
        raise ValueError(f"{name}: at most {duration.format_ms(duration.MAX_INTERVAL_MS)}")
    return length_ms / 1000
