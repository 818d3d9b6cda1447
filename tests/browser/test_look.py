"""Themes, narrow screens, the keyboard, and life without scripts."""

from __future__ import annotations

import dataclasses

import pytest
import web_overviews as fleet
from playwright.sync_api import expect

from poller.domain.record.overview import Overview

LONG = dataclasses.replace(
    fleet.FAILING,
    errors=(fleet.failure(0, device="d" * 80, target="t" * 120, code="c" * 40, message="m" * 500),),
    workers=(fleet.worker(1, name="w" * 120, tags={"k" * 40: "v" * 60}),),
    loads=(fleet.load("poll." + "q" * 150), fleet.load("poll." + "r" * 150, workers=0)),
    leader=dataclasses.replace(fleet.HEALTHY.leader, name="l" * 120)
    if fleet.HEALTHY.leader
    else None,
)


def test_light_and_dark_look_different_and_the_choice_stays(open_page) -> None:
    """A click changes the theme at once, a reload keeps it, and `system` follows the system."""
    page = open_page(color_scheme="light")
    light = page.screenshot()
    ground = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(ground) == "rgb(255, 255, 255)"
    page.get_by_role("link", name="dark").click()
    assert page.evaluate(ground) == "rgb(14, 19, 24)"
    assert page.screenshot() != light
    page.reload()
    assert page.evaluate(ground) == "rgb(14, 19, 24)"
    page.get_by_role("link", name="system").click()
    page.emulate_media(color_scheme="dark")
    assert page.evaluate(ground) == "rgb(14, 19, 24)"
    page.emulate_media(color_scheme="light")
    assert page.evaluate(ground) == "rgb(255, 255, 255)"


@pytest.mark.parametrize("width", [320, 375, 720, 721, 1000, 1280])
@pytest.mark.parametrize(
    "overview",
    [fleet.FAILING, fleet.EMPTY, fleet.NO_WORKERS, fleet.UNROUTABLE, LONG],
    ids=["failing", "empty", "idle", "unroutable", "long"],
)
def test_nothing_needs_sideways_scrolling(site, open_page, width: int, overview: Overview) -> None:
    """From a phone to a desk, with the longest texts a device can give."""
    site.shows = overview
    page = open_page(viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_on_a_phone_rows_are_cards(site, open_page) -> None:
    """Device and cause come first, the message takes the whole width, and labels replace the headings."""
    site.shows = fleet.FAILING
    page = open_page(viewport={"width": 320, "height": 800})
    row = page.locator('[data-table="errors"] tbody tr').first
    boxes = {
        name: row.locator(f".{name}").bounding_box()
        for name in ("device", "code", "message", "time")
    }
    assert boxes["device"]["y"] == pytest.approx(boxes["code"]["y"], abs=2)
    assert boxes["device"]["y"] < boxes["message"]["y"] < boxes["time"]["y"]
    assert boxes["message"]["width"] > 250
    label = page.locator('[data-table="workers"] tbody .memory').first
    assert "Memory" in label.evaluate("e => getComputedStyle(e, '::before').content")


def test_the_keyboard_reaches_everything_and_shows_where_it_is(open_page) -> None:
    """The first stop is the skip link, it leads to the content, and every stop has a visible ring."""
    page = open_page()
    expect(page.locator("#pause")).to_be_visible()
    page.keyboard.press("Tab")
    skip = page.get_by_role("link", name="Skip to the overview")
    expect(skip).to_be_focused()
    expect(skip).to_be_in_viewport()
    reached = []
    for _ in range(20):
        style = page.evaluate(
            """() => { const e = document.activeElement, s = getComputedStyle(e);
            return [e.textContent.trim(), s.outlineStyle, parseFloat(s.outlineWidth)] }"""
        )
        if style[0] in reached or page.evaluate("document.activeElement === document.body"):
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
    """At least 24 by 24 pixels, and 44 high under a finger."""
    for wishes, least in (({}, 24), ({"has_touch": True, "is_mobile": True}, 44)):
        page = open_page(**wishes)
        expect(page.locator("#pause")).to_be_visible()
        for control in page.locator("header button, header a").all():
            box = control.bounding_box()
            assert box["height"] >= least, control.inner_text()
            assert box["width"] >= 24


def test_without_scripts_everything_is_there_but_stands_still(site, open_page) -> None:
    """All numbers, tables and plots, an honest word about it, and reloading on request."""
    site.shows = fleet.FAILING
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


def test_a_screen_reader_hears_the_sentence_not_every_number(site, open_page) -> None:
    """There is one polite region, and it carries the verdict."""
    page = open_page()
    expect(page.get_by_role("status")).to_have_text(
        "All 98,204 targets answer. Polling is on time."
    )
    assert page.locator("[aria-live], [role=status], [role=alert]").count() == 1


def test_the_page_stays_small(site, open_page) -> None:
    """A full page of errors and workers is below the 1,500 nodes we allow ourselves."""
    site.shows = dataclasses.replace(
        fleet.FAILING, workers=tuple(fleet.worker(n) for n in range(50))
    )
    page = open_page()
    assert page.evaluate("document.querySelectorAll('*').length") < 1500


def test_a_queue_without_a_worker_comes_first_with_its_reason_and_goes_when_it_has_one(
    site, open_page
) -> None:
    """The table is there only while it has something to say."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    table = page.locator('[data-table="unroutable"]')
    expect(table).to_be_hidden()
    site.shows = fleet.UNROUTABLE
    expect(table.locator("tbody tr")).to_have_count(2)
    expect(table).to_be_visible()
    expect(table.locator(".message").nth(1)).to_have_text(
        "needs tag zone=lab; 5 workers live, none has it"
    )
    site.shows = fleet.HEALTHY
    expect(table).to_be_hidden()
