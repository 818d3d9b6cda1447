"""The overview on screens: themes, narrow screens, keyboard, and without scripts."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet
from playwright.sync_api import expect

from poller.domain.fleet.failing_causes import SiteSummary
from poller.domain.record.overview import Overview
from poller.service.fleet.fleet_picture import FleetPicture

LONG = dataclasses.replace(
    fleet.FAILING,
    errors=(fleet.failure(0, device="d" * 80, target="t" * 120, code="c" * 40, message="m" * 500),),
    workers=(fleet.worker(1, name="w" * 120, tags={"k" * 40: "v" * 60}),),
    loads=(fleet.load("poll." + "q" * 150), fleet.load("poll." + "r" * 150, workers=0)),
    leader=dataclasses.replace(fleet.HEALTHY.leader, name="l" * 120)
    if fleet.HEALTHY.leader
    else None,
)


def test_the_theme_changes_and_a_reload_keeps_it(open_page) -> None:
    """A click changes the theme at once, and `system` follows the system."""
    page = open_page(color_scheme="light")
    light = page.screenshot()
    background = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(background) == "rgb(255, 255, 255)"
    page.get_by_role("link", name="dark").click()
    assert page.evaluate(background) == "rgb(14, 19, 24)"
    assert page.screenshot() != light
    page.reload()
    assert page.evaluate(background) == "rgb(14, 19, 24)"
    page.get_by_role("link", name="system").click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(background) == "rgb(14, 19, 24)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(background) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [320, 375, 720, 721, 1000, 1280])
@pytest.mark.parametrize(
    "overview",
    [fleet.FAILING, fleet.EMPTY, fleet.NO_WORKERS, fleet.UNROUTABLE, LONG],
    ids=["failing", "empty", "idle", "unroutable", "long"],
)
def test_nothing_scrolls_sideways(site, open_page, width: int, overview: Overview) -> None:
    """From a phone to a desktop, with the longest texts of a device."""
    site.overview = overview
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_rows_are_cards(site, open_page) -> None:
    """Device and cause come first, the message has the whole width, labels replace headings."""
    site.overview = fleet.FAILING
    page = open_page(viewport={"width": 320, "height": 800})
    row = page.locator('[data-table="errors"] tbody tr').first
    boxes = {
        name: row.locator(f".{name}").bounding_box()
        for name in ("device", "code", "message", "time")
    }
    assert boxes["device"]["y"] == pytest.approx(boxes["code"]["y"], abs=2)
    assert boxes["device"]["y"] < boxes["message"]["y"] < boxes["time"]["y"]
    assert boxes["message"]["width"] > 250
    label = page.locator('[data-table="capacity"] tbody .wait').first
    assert "Wait p95" in label.evaluate("e => getComputedStyle(e, '::before').content")


def test_the_keyboard_reaches_every_control(open_page) -> None:
    """The first stop is the skip link to the content, and every stop has a visible outline."""
    page = open_page()
    expect(page.locator("#pause")).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the overview")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    reached = []
    for _ in range(60):
        style = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.textContent.trim(), s.outlineStyle, parseFloat(s.outlineWidth)] }"""
        )
        if page.evaluate("document.activeElement === document.body"):
            break
        assert style[1:] == ["solid", 2], style
        reached.append(style[0])
        page.keyboard.press("Tab")
    assert {
        "Pause",
        "Local time",
        "Flower",
        "system",
        "light",
        "dark",
        "The same by minute",
    } <= set(reached)
    skip.focus()
    page.keyboard.press("Enter")
    expect(page.locator("main")).to_be_focused()


def test_every_control_is_large_enough(open_page) -> None:
    """At least 24 by 24 pixels, and 44 high on a touch screen."""
    for options, minimum in (({}, 24), ({"has_touch": True, "is_mobile": True}, 44)):
        page = open_page(**options)
        expect(page.locator("#pause")).to_be_visible()
        for control in page.locator("header button, header a").all():
            box = control.bounding_box()
            assert box["height"] >= minimum, control.inner_text()
            assert box["width"] >= 24


def test_without_scripts_the_page_is_complete(site, open_page) -> None:
    """The page has all numbers, tables and plots, says that it is not live, and offers a reload."""
    site.overview = fleet.FAILING
    page = open_page(java_script_enabled=False)
    expect(page.locator('[data-cell="failing"]')).to_have_text("41")
    expect(page.locator('[data-table="errors"] tbody tr')).to_have_count(12)
    expect(page.locator("#live")).to_have_text("○ not live")
    expect(page.get_by_role("button")).to_have_count(0)
    page.get_by_role("link", name="Reload every 30 s").click()
    expect(page.locator(".still")).to_contain_text("It reloads every 30 s.")
    page.get_by_role("link", name="dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    expect(page.locator(".still")).to_contain_text("It reloads every 30 s.")


def test_a_screen_reader_announces_only_the_health_sentence(site, open_page) -> None:
    """There is one live region, with the verdict."""
    page = open_page()
    expect(page.get_by_role("status")).to_have_text(
        "All 98,204 targets answer. Polling is on time."
    )
    assert page.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_the_page_stays_small(site, open_page) -> None:
    """A page full of errors and workers has fewer than 1,500 nodes."""
    site.overview = dataclasses.replace(
        fleet.FAILING, workers=tuple(fleet.worker(n) for n in range(50))
    )
    page = open_page()
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


@pytest.mark.parametrize(("width", "height"), [(1920, 1080), (3840, 2160)])
@pytest.mark.parametrize("number", [1, 12, 200])
def test_the_wall_shows_all_sites_without_scrolling(
    site, open_page, number: int, width: int, height: int
) -> None:
    """Every tile is in the window, no text is cut, and a dark site is the largest."""
    sites = [SiteSummary(f"a-long-name-{n:03}", 40, int(n == 3)) for n in range(number)]
    site.fleet = FleetPicture(sites=sites, as_of_ms=fleet.NOW_MS)
    site.overview = dataclasses.replace(fleet.FAILING, dark={sites[0].name: fleet.NOW_MS - 9_000})
    page = open_page(viewport={"width": width, "height": height})
    page.goto(f"{site.url}wall")
    assert page.evaluate("document.documentElement.scrollHeight") <= height
    tiles = [tile.bounding_box() for tile in page.locator(".tiles-of-sites li").all()]
    assert len(tiles) == number
    assert all(box["y"] + box["height"] <= height for box in tiles)
    areas = [box["width"] * box["height"] for box in tiles]
    assert areas[0] == pytest.approx(max(areas), rel=0.01)
    assert number == 1 or areas[0] > 3 * areas[-1]
    cut = page.locator(".tiles-of-sites b").evaluate_all(
        "all => all.filter(each => each.scrollHeight > 1.3 * each.clientHeight).length"
    )
    assert cut == 0


def test_unroutable_queues_are_shown_with_their_reason_while_there_are_any(site, open_page) -> None:
    """The table is hidden while it has no rows."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    table = page.locator('[data-table="unroutable"]')
    expect(table).to_be_hidden()
    site.overview = fleet.UNROUTABLE
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(table).to_be_visible()
    expect(table.locator(".message").nth(1)).to_have_text(
        "needs tag zone=lab; 5 workers live, none has it"
    )
    site.overview = fleet.HEALTHY
    expect(table).to_be_hidden()
