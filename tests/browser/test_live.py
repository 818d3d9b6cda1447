"""The live page: it follows the board, and does not disturb its reader."""

from __future__ import annotations

import dataclasses

import web_overviews as fleet
from playwright.sync_api import Page, expect


def cell(page: Page, name: str):
    return page.locator(f'[data-cell="{name}"]')


def test_the_page_follows_the_board_without_a_reload(site, open_page, page_log) -> None:
    """Sentence, numbers, colours, plots, tables and tab title change in the page that is open."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    expect(cell(page, "health")).to_have_text("All 98,204 targets answer. Polling is on time.")
    page.evaluate("window.element = document.querySelector('[data-cell=failing]')")
    site.overview = fleet.FAILING
    expect(cell(page, "health")).to_have_text(
        "41 of 98,204 targets failing. 12 need a person (dead letters). Polling is on time. "
        "2 targets are paused by hand."
    )
    expect(cell(page, "failing")).to_have_attribute("data-tone", "failing")
    expect(page).to_have_title("(41) poller")
    expect(page.locator('[data-table="errors"] tbody tr')).to_have_count(12)
    expect(page.locator('[data-plot="polls"] .gap')).to_have_count(1)
    assert page.evaluate("window.element.isConnected && window.element.textContent") == "41"
    assert page_log.paths.count("/") == 1


def test_a_recovery_removes_colours_and_rows(site, open_page) -> None:
    """The page of a recovered fleet has no tone, no error row and a plain title."""
    site.overview = fleet.FAILING
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = fleet.HEALTHY
    expect(cell(page, "failing")).to_have_text("0")
    assert cell(page, "failing").get_attribute("data-tone") is None
    expect(page.locator('[data-table="errors"] tbody tr')).to_have_count(0)
    expect(page.locator('[data-table="errors"] .empty')).to_be_visible()
    expect(page).to_have_title("poller")


def test_a_patched_page_is_equal_to_a_loaded_one(site, open_page) -> None:
    """Rows that the script adds are equal to rows of the server."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = fleet.FAILING
    expect(page.locator('[data-table="errors"] tbody tr')).to_have_count(12)
    patched = page.locator('[data-table="errors"] tbody').inner_text()
    loaded = open_page().locator('[data-table="errors"] tbody').inner_text()
    assert patched.split() == loaded.split()


def test_rows_do_not_move_under_the_pointer(site, open_page) -> None:
    """While the pointer is on a table, a button shows the number of new rows."""
    site.overview = fleet.FAILING
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    table = page.locator('[data-table="errors"]')
    table.locator("tbody tr").first.hover()
    first = table.locator("tbody tr").first.inner_text()
    newer = fleet.failure(0, at_ms=fleet.NOW_MS, device="new-1")
    site.overview = dataclasses.replace(fleet.FAILING, errors=(newer, *fleet.FAILING.errors))
    button = table.get_by_role("button", name="1 changed, show")
    expect(button).to_be_visible()
    assert table.locator("tbody tr").first.inner_text() == first
    button.click()
    expect(table.locator("tbody tr").first).to_contain_text("new-1")
    expect(button).to_be_hidden()


def test_a_selected_text_stays_selected(site, open_page) -> None:
    """An error message can be copied while the numbers change."""
    site.overview = fleet.FAILING
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    page.locator('[data-table="errors"] tbody .message').first.select_text()
    selected = page.evaluate("getSelection().toString()")
    page.mouse.move(5, 5)
    site.overview = dataclasses.replace(
        fleet.FAILING, dead_letters={"auth_failed": 13}, errors=fleet.FAILING.errors[1:]
    )
    expect(cell(page, "letters")).to_have_text("13")
    expect(page.locator('[data-table="errors"]').get_by_role("button")).to_be_visible()
    assert page.evaluate("getSelection().toString()") == selected != ""


def test_a_pause_stops_the_page_and_shows_its_start(site, open_page) -> None:
    """A paused page reads nothing; resuming updates it."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    page.get_by_role("button", name="Pause").click()
    expect(page.locator("#live")).to_contain_text("‖ paused since 00:13:")
    site.overview = fleet.FAILING
    reads = site.reads
    page.wait_for_timeout(1500)
    assert site.reads == reads, "a paused page still reads"
    expect(cell(page, "failing")).to_have_text("0")
    page.get_by_role("button", name="Resume").click()
    expect(cell(page, "failing")).to_have_text("41")


def test_the_first_device_ends_the_first_run(site, open_page) -> None:
    """The page with three commands becomes the overview."""
    site.overview = fleet.EMPTY
    page = open_page()
    expect(page.locator(".begin code")).to_have_count(3)
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = fleet.HEALTHY
    expect(cell(page, "up-to-date")).to_have_text("99.99 %")


def test_the_page_reconnects_to_a_lost_server(site, open_page, page_log) -> None:
    """Meanwhile the page shows the time of its last update."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.stop()
    expect(page.locator("#live")).to_contain_text("■ no update since 00:13:")
    site.overview = fleet.FAILING
    site.start()
    expect(cell(page, "failing")).to_have_text("41", timeout=15_000)
    expect(page.locator("#live")).to_have_text("● live")
    refused = [
        text
        for text in page_log.errors
        if "ERR_CONNECTION_REFUSED" in text or "ERR_INCOMPLETE" in text
    ]
    assert page_log.errors == refused
    page_log.errors.clear()


def test_times_can_be_shown_in_local_time(site, open_page) -> None:
    """The zone is shown beside the times, and a reload keeps the choice."""
    site.overview = fleet.FAILING
    page = open_page(timezone_id="Europe/Amsterdam")
    time = page.locator('[data-table="errors"] tbody time').first
    expect(time).to_have_text("2026-11-17 00:13:09")
    page.get_by_role("button", name="Local time").click()
    expect(time).to_have_text("2026-11-17 01:13:09")
    expect(page.locator("[data-zone]").first).to_have_text("+01:00")
    page.reload()
    expect(time).to_have_text("2026-11-17 01:13:09")


def test_hostile_texts_of_the_stream_are_not_markup(site, open_page) -> None:
    """A script in a device name is shown as text after a patch; a dialog would fail this test."""
    page = open_page()
    expect(page.locator("#live")).to_have_text("● live")
    site.overview = fleet.HOSTILE
    expect(page.locator('[data-table="errors"] tbody .device')).to_have_text(fleet.SCRIPT)
    expect(page.locator('[data-table="capacity"] tbody .name')).to_have_text(f"poll.{fleet.SCRIPT}")
    assert page.locator("main script, main img").count() == 0
