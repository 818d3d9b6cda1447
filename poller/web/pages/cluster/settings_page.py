"""Settings as texts: those that were set, all, or what a search finds. Secrets are masked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from poller.presentation import formatting
from poller.settings.setting_table import SettingRow


@dataclass(frozen=True, slots=True)
class SettingLine:
    """One setting."""

    name: str
    value: str
    origin: str
    meaning: str
    default: str  # "" unless the value differs from it
    is_set: bool


@dataclass(frozen=True, slots=True)
class SettingsView:
    """The page of settings."""

    as_of: str
    lines: Sequence[SettingLine]
    summary: str
    search: str
    shows_all: bool
    every_url: str
    set_url: str
    caption: str
    empty: str


def build_view(
    rows: Sequence[SettingRow], search: str, shows_all: bool, now_ms: int
) -> SettingsView:
    """Build the view. A search looks at all settings."""
    chosen = [row for row in rows if row.is_set]
    number = len(chosen)
    if search:
        chosen = [row for row in rows if _matches(row, search)]
    elif shows_all:
        chosen = list(rows)
    total = formatting.counted(len(rows), "setting")
    return SettingsView(
        as_of=formatting.instant(now_ms),
        lines=[_line(row) for row in chosen],
        summary=f"{formatting.exact(number)} of {total} {'is' if number == 1 else 'are'} set.",
        search=search,
        shows_all=shows_all,
        every_url=f"settings?{urlencode({'show': 'all'})}",
        set_url="settings",
        caption=_caption(search, shows_all),
        empty="No setting matches." if search else "None is set: every setting has its default.",
    )


def _line(row: SettingRow) -> SettingLine:
    return SettingLine(
        name=row.name,
        value=row.value,
        origin=row.origin,
        meaning=row.description,
        default=(row.default or "empty") if row.value != row.default else "",
        is_set=row.is_set,
    )


def _caption(search: str, shows_all: bool) -> str:
    if search:
        return f"All settings with “{search}”"
    return "All settings" if shows_all else "Settings that were set"


def _matches(row: SettingRow, search: str) -> bool:
    """Whether each word is in the name, the variable, the value, the origin or the meaning."""
    texts = (row.name, f"POLLER_{row.name}", row.value, row.origin, row.description)
    text = " ".join(texts).casefold()
    return all(word in text for word in search.casefold().split())
