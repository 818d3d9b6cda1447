"""The collectors page: its links, both themes, narrow screens, and without scripts."""

from __future__ import annotations

import pytest
import web_collectors
from playwright.sync_api import expect

BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 19, 24)"}


def test_the_overview_links_to_the_collectors(site, open_page) -> None:
    """The collectors page links to that of a collector, which has its options, and back."""
    page = open_page()
    page.get_by_role("link", name="Collectors", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Collectors")
    listed = page.locator('[data-table="collectors"]')
    expect(listed.get_by_role("row", name="routeros")).to_contain_text("quarantined")
    page.get_by_role("link", name="snmp", exact=True).click()
    expect(page.get_by_role("heading", level=1)).to_have_text("snmp")
    expect(page.get_by_text("Options of snmp")).to_be_visible()
    page.get_by_role("link", name="poller", exact=True).click()
    expect(page.locator("#live")).to_have_text("● live")


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("width", [320, 720, 1280])
def test_the_page_fits_every_width_in_both_themes(site, open_page, theme: str, width: int) -> None:
    """Without scripts, and without scrolling sideways."""
    page = open_page(java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(f"{site.url}collectors?theme={theme}")
    expect(page.locator("body")).to_have_css("background-color", BACKGROUNDS[theme])
    expect(page.get_by_text("Cannot be used")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_long_reason_does_not_break_a_name(site, open_page) -> None:
    """The reason of a quarantine is wrapped; the names stay on one line."""
    site.collectors = web_collectors.status(
        crash="it ended its process during a poll of core-1.west " * 4
    )
    page = open_page()
    page.goto(f"{site.url}collectors")
    names = page.locator('[data-table="collectors"] tbody .name a')
    heights = [name.evaluate("e => e.getClientRects().length") for name in names.all()]
    assert heights == [1, 1]
