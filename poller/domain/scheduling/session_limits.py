"""Limits of device sessions: how long one stays open, and how many a host gets. One set for all
collectors, and exceptions by collector.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, fields, replace
from typing import Any

from poller import errors

EXAMPLE = "for example routeros.per_host=2"


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of one collector. The field names are words of the setting session_exceptions."""

    idle_s: float = 600.0  # a session is closed after this time without use
    age_s: float = 86_400.0  # a session is replaced at this age
    per_host: int = 4  # sessions to one address at a time
    pace_s: float = 0.0  # shortest time between two new sessions


#: Minimum and maximum of each limit.
BOUNDS = {"idle_s": (0, 86_400), "age_s": (0, 2_678_400), "per_host": (1, 1000), "pace_s": (0, 60)}
_INTEGERS = {field.name for field in fields(Limits) if field.type == "int"}


@dataclass(frozen=True, slots=True)
class Rules:
    """The limits of each collector, and `per_worker` sessions in one worker process."""

    usual: Limits = Limits()
    by_collector: Mapping[str, Limits] = field(default_factory=dict)
    per_worker: int = 4096

    def for_collector(self, collector: str) -> Limits:
        """Return the limits of a collector."""
        return self.by_collector.get(collector, self.usual)


def parse_exceptions(words: Iterable[str], usual: Limits) -> dict[str, Limits]:
    """Return the limits of `collector.limit=number` words.

    Raises InvalidSetting, naming the word.
    """
    exceptions: dict[str, Limits] = {}
    for word in words:
        collector, limit, number = _parse(word)
        limits = exceptions.get(collector, usual)
        exceptions[collector] = replace(limits, **{limit: number})

    return exceptions


def _parse(word: str) -> tuple[str, str, Any]:
    head, equals, text = word.partition("=")
    collector, dot, limit = head.rpartition(".")
    if not (collector and dot and equals):
        raise _refused(word, "is not COLLECTOR.LIMIT=NUMBER", EXAMPLE)
    if limit not in BOUNDS:
        near = difflib.get_close_matches(limit, BOUNDS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are: {', '.join(BOUNDS)}"
        raise _refused(word, f"names no limit: {limit}", hint)

    number = _number(text, limit)
    if number is None:
        minimum, maximum = BOUNDS[limit]
        kind = "a whole number" if limit in _INTEGERS else "a number"
        raise _refused(word, f"needs {kind} from {minimum} to {maximum}", EXAMPLE)
    return collector, limit, number


def _number(text: str, limit: str) -> float | None:
    """Return the number of a text, or None if the limit does not take it."""
    try:
        number = float(text)
    except ValueError:
        return None
    minimum, maximum = BOUNDS[limit]
    if not minimum <= number <= maximum:  # also refuses NaN and infinity
        return None
    if limit not in _INTEGERS:
        return number
    return int(number) if number == int(number) else None


def _refused(word: str, fault: str, hint: str) -> errors.InvalidSetting:
    return errors.InvalidSetting(f'"{word}" {fault}', hint=hint)
