"""How long is a connection kept, and how many does one host bear? Limits for all collectors, and exceptions by name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from poller import errors

EXAMPLE = "for example routeros.per_host=2"


@dataclass(frozen=True, slots=True)
class Limits:
    idle_s: float = 600.0  # closed when nobody used it for so long
    age_s: float = 86_400.0  # and replaced when it is so old
    per_host: int = 4  # connections to one address at a time
    pace_s: float = 0.0  # least time between two new ones


#: Least and most of each.
BOUNDS = {"idle_s": (0, 86_400), "age_s": (0, 2_678_400), "per_host": (1, 1000), "pace_s": (0, 60)}


@dataclass(frozen=True, slots=True)
class Rules:
    """One set of limits for most collectors, others by name; `most` connections in one worker process."""

    usual: Limits = Limits()
    by_collector: Mapping[str, Limits] = field(default_factory=dict)
    most: int = 4096

    def of(self, collector: str) -> Limits:
        return self.by_collector.get(collector, self.usual)


def exceptions(words: Iterable[str], usual: Limits) -> dict[str, Limits]:
    """`collector.limit=number` words. Raises InvalidSetting, naming the word and what it takes."""
    found: dict[str, Limits] = {}
    for word in words:
        collector, limit, number = _read(word)
        found[collector] = replace(found.get(collector, usual), **{limit: number})
    return found


def _read(word: str) -> tuple[str, str, Any]:
    head, equals, text = word.partition("=")
    collector, dot, limit = head.rpartition(".")
    if not (collector and dot and equals):
        raise _refused(word, "is not COLLECTOR.LIMIT=NUMBER", EXAMPLE)
    if limit not in BOUNDS:
        near = difflib.get_close_matches(limit, BOUNDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(BOUNDS)}"
        raise _refused(word, f"names no limit: {limit}", hint)
    least, most = BOUNDS[limit]
    number = _number(text)
    whole = limit not in _WHOLE or (number is not None and number == int(number))
    if number is None or not least <= number <= most or not whole:
        kind = "a whole number" if limit in _WHOLE else "a number"
        raise _refused(word, f"needs {kind} from {least} to {most}", EXAMPLE)
    return collector, limit, int(number) if limit in _WHOLE else number


def _number(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return number if abs(number) < float("inf") else None  # and no NaN


_WHOLE = {field.name for field in fields(Limits) if field.type == "int"}


def _refused(word: str, why: str, hint: str) -> errors.InvalidSetting:
    return errors.InvalidSetting(f'"{word}" {why}', hint=hint)
