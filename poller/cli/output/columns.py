"""The columns of a list: what each says of an item, and what may happen to it on a narrow screen."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any, NamedTuple

Item = Mapping[str, Any]


class Fit(enum.Enum):
    """What may happen to a text when there is no room for all of it."""

    CUT = "cut"  # shortened to one line
    WHOLE = "whole"  # nothing: names, times and codes, which people copy
    WRAP = "wrap"  # more lines rather than fewer words
    REST = "rest"  # gets what is left on the line; too little, and it goes below the row


class Column(NamedTuple):
    """Its title, and the text of an item in it. Of the `spare` ones the highest is left out first."""

    title: str
    text: Callable[[Item], str]
    right: bool = False
    fit: Fit = Fit.CUT
    spare: int = 0
    short: Callable[[Item], str] | None = None  # for a screen, where people read it now
    least: int = 0  # cells that it keeps, if it needs them, when others may be left out instead

    def on_screen(self, item: Item) -> str:
        return one_line((self.short or self.text)(item))


def column(title: str, key: str, right: bool = False, fit: Fit = Fit.CUT, spare: int = 0) -> Column:
    return Column(title, lambda item: plain(item[key]), right, fit, spare)


def moment(title: str, key: str) -> Column:
    """An instant; on a screen one of today has no date."""

    def short(item: Item) -> str:
        instant = item[key]
        today = instant is not None and instant.astimezone(UTC).date() == datetime.now(UTC).date()
        return plain(instant).partition("T")[2] if today else plain(instant)

    return Column(title, lambda item: plain(item[key]), fit=Fit.WHOLE, short=short)


def rfc3339(instant: datetime) -> str:
    return instant.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def plain(value: Any) -> str:
    """A value as people read it; nothing for nothing."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={word(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))
    return str(value)


def word(part: Any) -> str:
    """The value of an option as `-o` takes it."""
    if isinstance(part, bool):
        return "true" if part else "false"
    if isinstance(part, Mapping):
        return ",".join(f"{key}={word(each)}" for key, each in part.items())
    if isinstance(part, list | tuple):
        return ",".join(map(word, part))
    return str(int(part)) if isinstance(part, float) and part.is_integer() else str(part)


def one_line(text: str) -> str:
    return "".join(c if c.isprintable() else " " for c in text)
