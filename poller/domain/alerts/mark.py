"""Marks: conditions that hold for a target, as its last poll showed them. The board stores them.

A worker gets the marks of a target with `start`, judges the poll, and hands the new marks to
`finish`. So the marks follow a target from worker to worker, and no poll is judged twice.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

#: Marks of one target beyond this many are left out: a switch that lost its power supply has
#: hundreds of ports down, and one alert for the device says more.
MOST_MARKS = 200
_encode = json.JSONEncoder(ensure_ascii=False, separators=(",", ":")).encode


@dataclass(frozen=True, slots=True)
class Mark:
    """One condition that holds. Instants are UTC milliseconds by the board's clock."""

    rule_id: int
    series: str  # what it is about within the target, such as `ifName=eth0`; "" is the target
    since_ms: int  # the first poll that showed the condition
    at_ms: int  # the last one
    value: float | None = None
    labels: Mapping[str, str] = field(default_factory=dict)  # for the text of the alert

    @property
    def key(self) -> tuple[int, str]:
        return self.rule_id, self.series


def plain(text: str) -> str:
    """Return what a device says, with blanks for control characters: PostgreSQL stores no NUL, and
    one refused alert would hold back all others.
    """
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else " " for each in text)


def pack(marks: Sequence[Mark]) -> str:
    """Return the stored text of a target's marks; "" for none."""
    if not marks:
        return ""
    kept = marks[:MOST_MARKS]
    rows = [[m.rule_id, m.series, m.since_ms, m.at_ms, m.value, dict(m.labels)] for m in kept]
    return _encode(rows)


def unpack(text: str | None) -> list[Mark]:
    """Return the marks of a stored text. A text that is damaged has none."""
    if not text:
        return []
    try:
        rows: list[Any] = json.loads(text)
        marks = [Mark(*row) for row in rows]
    except (ValueError, TypeError):
        return []
    return marks if all(map(_is_whole, marks)) else []


def _is_whole(mark: Mark) -> bool:
    """Whether every part has its type."""
    return (
        all(type(number) is int for number in (mark.rule_id, mark.since_ms, mark.at_ms))
        and isinstance(mark.series, str)
        and isinstance(mark.value, float | int | None)
        and isinstance(mark.labels, dict)
    )
