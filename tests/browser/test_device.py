"""The device page: its links, both themes, narrow screens, and without scripts."""

from __future__ import annotations

import dataclasses

import pytest
import web_device_states
import web_overviews as fleet
import web_rates
from playwright.sync_api import expect

BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 19, 24)"}


def test_an_error_links_to_its_device(site, open_page) -> None:
    """Also in a row that was added while the page was open. The device links back."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = dataclasses.replace(fleet.FAILING, errors=(fleet.failure(0, device="sw1"),))
    page.get_by_role("link", name="sw1").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sw1")
    expect(page.locator(".rates tbody tr")).to_have_count(4)
    expect(page.locator('[data-table="targets"] tbody tr')).to_contain_text("● ok")
    expect(page.get_by_role("img", name="ifHCInOctets over the last 1h").first).to_be_visible()
    page.get_by_role("link", name="poller", exact=True).click()
    expect(page.locator("#live")).to_have_text("● live")


@pytest.mark.parametrize("theme", BACKGROUNDS)
def test_the_theme_changes_without_scripts(site, open_page, theme: str) -> None:
    """The chosen metric and span stay in the address."""
    page = open_page(java_script_enabled=False)
    page.goto(f"{site.url}devices/sw1?metric=ifInErrors&since=6h")
    page.get_by_role("link", name=theme, exact=True).click()
    expect(page.locator("html")).to_have_attribute("data-theme", theme)
    expect(page.locator("body")).to_have_css("background-color", BACKGROUNDS[theme])
    expect(page.get_by_role("link", name="6h")).to_have_attribute("aria-current", "true")
    expect(page.locator(".rates tbody tr").first).to_contain_text("ifInErrors")


@pytest.mark.parametrize("width", [320, 720, 1280])
def test_long_names_do_not_scroll_sideways(site, open_page, width: int) -> None:
    """The rates have a reset, a gap and a very long name."""
    site.polls = web_rates.polls(60, 2, lost=range(10, 20), restart=1, name="x" * 120)[:-1]
    page = open_page(viewport={"width": width, "height": 800})
    page.goto(f"{site.url}devices/sw1")
    expect(page.locator(".rates tbody tr").first).to_contain_text("reset: the device restarted")
    expect(page.locator(".rates tbody tr").first).to_contain_text("before: 1 gap")
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("width", [320, 720, 1280])
def test_the_error_of_a_target_is_text_on_every_screen(
    site, open_page, theme: str, width: int
) -> None:
    """The error is in a table and can be selected, without scripts or scrolling sideways."""
    message = "no answer from " + "x" * 300
    site.polls = []
    site.device_state = web_device_states.never_answered(message, address="a" * 120, site="s" * 120)
    page = open_page(java_script_enabled=False, viewport={"width": width, "height": 800})
    page.goto(f"{site.url}devices/sw1?theme={theme}")
    table = page.get_by_role("table", name="Targets")
    expect(table.locator("tbody .message")).to_have_text(f"timeout: {message}")
    expect(table.locator("tbody .state")).to_contain_text("■ failing")
    expect(table.locator("[title]")).to_have_count(0)
    expect(page.get_by_text("without a good answer")).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_a_target_is_a_card(site, open_page) -> None:
    """Name and state are on the first line, and the error has the whole width."""
    site.device_state = web_device_states.never_answered()
    page = open_page(viewport={"width": 320, "height": 800})
    page.goto(f"{site.url}devices/sw1")
    row = page.locator('[data-table="targets"] tbody tr')
    boxes = {name: row.locator(f".{name}").bounding_box() for name in ("name", "state", "message")}
    assert boxes["name"]["y"] == pytest.approx(boxes["state"]["y"], abs=4)
    assert boxes["message"]["width"] > 250


def test_a_change_links_to_its_device(site, open_page) -> None:
    """Also in a row that was added while the page was open."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = dataclasses.replace(
        fleet.FAILING, events=(fleet.change(0, device="sw1", target="snmp"),)
    )
    page.locator('[data-table="changes"]').get_by_role("link", name="sw1/snmp").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("sw1")


def test_an_error_page_links_to_the_overview(site, browser) -> None:
    """In a page without a log: Chromium logs a 404 as an error."""
    page = browser.new_page()
    for path in ("foo", "devices/nope", "devices/sw1?since=zzz"):
        page.goto(f"{site.url}{path}")
        page.get_by_role("link", name="Back to the overview").click()
        expect(page).to_have_url(site.url)
    page.close()
