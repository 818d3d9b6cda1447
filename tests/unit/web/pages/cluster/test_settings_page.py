"""Settings as texts: those that were set, all, or what a search finds."""

from __future__ import annotations

import pytest

from poller.settings.setting_table import SettingRow
from poller.web.pages.cluster import settings_page

ROWS = [
    SettingRow("batch_size", "64", "environment POLLER_BATCH_SIZE", "Targets per batch.", "64"),
    SettingRow("tick_s", "1.0", "poller.toml, line 3", "Longest pause.", "0.5"),
    SettingRow("secret_key", "", "default", "Keys.", ""),
    SettingRow("web_url", "http://x/", "poller.toml, line 9", "URL of the page.", ""),
]


def shown(search: str = "", shows_all: bool = False) -> list[str]:
    view = settings_page.build_view(ROWS, search, shows_all, 0)
    return [line.name for line in view.lines]


def test_those_that_were_set_are_shown_first() -> None:
    """Also one that was set to its default; a link shows all."""
    assert shown() == ["batch_size", "tick_s", "web_url"]
    assert len(shown(shows_all=True)) == 4
    view = settings_page.build_view(ROWS, "", False, 0)
    assert view.summary == "3 of 4 settings are set."
    assert [line.default for line in view.lines] == ["", "0.5", "empty"]


@pytest.mark.parametrize(
    ("search", "found"),
    [
        ("keys", ["secret_key"]),
        ("POLLER_TICK", ["tick_s"]),
        ("poller.toml url", ["web_url"]),
        ("line 3", ["tick_s"]),
        ("64", ["batch_size"]),
        ("absent", []),
    ],
)
def test_a_search_looks_at_everything_that_is_shown(search: str, found: list[str]) -> None:
    """Every word must be in the name, the variable, the value, the origin or the meaning."""
    assert shown(search) == found
