"""The page of the collectors: reached by a click, readable in both themes and on a phone, without scripts."""

from __future__ import annotations

import pytest
import web_collectors
from playwright.sync_api import expect

GROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 19, 24)"}


def test_the_collectors_are_one_click_away(site, open_page) -> None:
    """And back to the overview is one, too."""
    page = open_page()
    page.get_by_role("link", name="Collectors", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Collectors")
    expect(page.get_by_role("row", name="routeros")).to_contain_text("quarantined")
    page.get_by_role("link", name="snmp", exact=True).click()
    expect(page.get_by_text("Options of snmp")).to_be_in_viewport()
    page.get_by_role("link", name="poller", exact=True).click()
    expect(page.locator("#live")).to_have_text("● live")


@pytest.mark.parametrize("theme", GROUNDS)
@pytest.mark.parametrize("width", [320, 720, 1280])
def test_both_themes_and_every_width(site, open_page, theme: str, width: int) -> None:
    """Nothing scrolls sideways, without scripts either."""
    page = open_page(java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(f"{site.url}collectors?theme={theme}")
    expect(page.locator("body")).to_have_css("background-color", GROUNDS[theme])
    expect(page.get_by_text("Cannot be used")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_reason_leaves_a_name_in_one_piece(site, open_page) -> None:
    """What a quarantine says widens its column, not at the cost of the others."""
    site.collectors = web_collectors.found(
        crash="it ended its process during a poll of core-1.west " * 4
    )
    page = open_page()
    page.goto(f"{site.url}collectors")
    names = page.locator('[data-table="collectors"] tbody .name a')
    heights = [name.evaluate("e => e.getClientRects().length") for name in names.all()]
    assert heights == [1, 1]
