"""The columns of a list: the text of an item in each, and how each gives way on a narrow screen."""

from __future__ import annotations

import enum
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from poller.domain.inventory import duration
from poller.presentation import formatting

Item = Mapping[str, Any]
Text = Callable[[Item], str]


class Fit(enum.Enum):
    """How a text gives way on a screen that is too narrow for it."""

    CUT = "cut"  # shortened to one line
    WHOLE = "whole"  # never shortened: names, times and codes, which people copy
    WRAP = "wrap"  # wrapped over several lines
    REST = "rest"  # gets the rest of the line, or a line below its row


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a list. Spare columns are left out first, the highest `spare` before others."""

    title: str
    text: Text
    right: bool = False
    fit: Fit = Fit.CUT
    spare: int = 0
    short: Text | None = None  # replaces `text` on a screen
    minimum: int = 0  # cells this column keeps while a spare column can be left out instead
    wraps: bool = False  # of a column that gets the rest: wrapped instead of cut
    style: Text | None = None  # the colour of an item's cell on a screen, in the words of Rich

    def on_screen(self, item: Item) -> str:
        """The text for a screen: short, on one line."""
        text = self.short or self.text
        return one_line(text(item))


def column(title: str, key: str, right: bool = False, fit: Fit = Fit.CUT, spare: int = 0) -> Column:
    """A column that shows one field of the item."""

    def text(item: Item) -> str:
        return plain(item[key])

    return Column(title, text, right, fit, spare)


def moment(title: str, key: str, spare: int = 0) -> Column:
    """A column for an instant. On a screen, an instant of today has no date."""

    def text(item: Item) -> str:
        return plain(item[key])

    def short(item: Item) -> str:
        at = item[key]
        if at is None:
            return ""
        if isinstance(at, str):
            at = datetime.fromisoformat(at)
        day = at.astimezone(UTC).date()
        today = datetime.now(UTC).date()
        text = rfc3339(at)
        return text.partition("T")[2] if day == today else text

    return Column(title, text, fit=Fit.WHOLE, spare=spare, short=short)


def age_column(
    title: str, key: str, tail: str = "", fit: Fit = Fit.WHOLE, spare: int = 0
) -> Column:
    """A column for a number of seconds, as in `3 m 20 s`; empty where the item has None."""

    def text(item: Item) -> str:
        seconds = item[key]
        if seconds is None:
            return ""
        return formatting.age(seconds * 1000) + tail

    return Column(title, text, right=True, fit=fit, spare=spare)


def duration_column(title: str, key: str, spare: int = 0) -> Column:
    """A column for seconds, as in `1.2 s`; empty where the item has None."""

    def text(item: Item) -> str:
        seconds = item[key]
        if seconds is None:
            return ""
        return duration.rounded_text(round(seconds * 1000))

    return Column(title, text, right=True, fit=Fit.WHOLE, spare=spare)


def target_column() -> Column:
    """The column `DEVICE/TARGET`."""

    def text(item: Item) -> str:
        return f"{item['device']}/{item['target']}"

    return Column("TARGET", text, fit=Fit.WHOLE)


def error_column(title: str, wraps: bool = False) -> Column:
    """The column `error_code (category): message`, which gets the rest of the line."""

    def text(item: Item) -> str:
        code, category = item["error_code"], item.get("category")
        named = f"{code} ({category})" if category else code
        return ": ".join(part for part in (named, item["message"]) if part)

    return Column(title, text, fit=Fit.REST, wraps=wraps)


def origin_column() -> Column:
    """The column with a plugin's distribution and version."""

    def text(item: Item) -> str:
        return f"{item['distribution']} {item['version']}".rstrip()

    return Column("FROM", text)


def instant(ms: int) -> datetime | None:
    """An instant in UTC; None for 0, which stands for "never"."""
    if not ms:
        return None
    return datetime.fromtimestamp(ms / 1000, UTC)


def rfc3339(at: datetime) -> str:
    """An instant in UTC, to the second: `2026-11-16T12:00:00Z`."""
    return at.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z")


def plain(value: Any) -> str:
    """A value as people read it; an empty text for None."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return rfc3339(value)
    if isinstance(value, Mapping):
        return " ".join(f"{key}={option_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return " ".join(map(str, value))

    return str(value)


def option_text(value: Any) -> str:
    """The value of an option as `-o key=value` takes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, Mapping):
        return ",".join(f"{key}={option_text(part)}" for key, part in value.items())
    if isinstance(value, list | tuple):
        return ",".join(map(option_text, value))
    if isinstance(value, float) and value.is_integer():
        return str(int(value))

    return str(value)


def one_line(text: str) -> str:
    """The text with every unprintable character, line ends included, replaced by a space."""
    return "".join(c if c.isprintable() else " " for c in text)
