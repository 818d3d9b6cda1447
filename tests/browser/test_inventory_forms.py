"""The forms of the inventory in a real browser: a chosen file, and the way by keyboard."""

from __future__ import annotations

from playwright.sync_api import Page, expect

from poller.db.inventory import devices
from tests.browser import test_fleet
from tests.browser.test_fleet import Fleet

fleet = test_fleet.fleet
context = test_fleet.context
page = test_fleet.page

ROWS = "name,address,collector,interval\nnew-1,192.0.2.1,ping,{}\n"


def choose(page: Page, name: str, content: bytes) -> None:
    file = {"name": name, "mimeType": "text/plain", "buffer": content}
    page.get_by_label("Choose a file").set_input_files(files=[file])  # type: ignore[list-item]


def test_a_chosen_file_is_checked_corrected_and_imported(fleet: Fleet, page: Page) -> None:
    """The script fills the text in, and everything after it is a form."""
    page.goto(fleet.url + "devices")
    page.get_by_role("link", name="Import").click()
    choose(page, "old.csv", b"name\nd\xe9j\xe0\n")
    expect(page.get_by_text("old.csv is not UTF-8 text, or cannot be read")).to_be_visible()
    choose(page, "fleet.csv", ROWS.format("5 min").encode())
    expect(page.get_by_text("fleet.csv is filled in")).to_be_visible()
    expect(page.get_by_label("Form", exact=True)).to_have_value("csv")
    page.get_by_role("button", name="Preview").click()
    expect(page.locator('[data-table="problems"] tbody tr')).to_have_count(1)
    page.get_by_label("Its text, chosen or pasted").fill(ROWS.format("5m"))
    page.get_by_role("button", name="Preview").click()
    expect(page.get_by_text("1 device added")).to_be_visible()
    page.get_by_role("button", name="Import exactly this").click()
    expect(page.get_by_role("status").filter(has_text="Imported")).to_be_visible()
    assert devices.show(fleet.services.engine, "new-1").address == "192.0.2.1"


def test_a_device_is_added_by_keyboard(fleet: Fleet, page: Page) -> None:
    """Enter in a field looks what answers; nobody does, so the target is typed by hand."""
    page.goto(fleet.url + "devices/-/add")
    page.get_by_label("Address").focus()
    page.keyboard.type("192.0.2.7")
    page.keyboard.press("Enter")
    expect(page.get_by_text("no running worker has the collector ping")).to_be_visible()
    page.get_by_role("button", name="Choose its options").press("Enter")
    page.get_by_label("Every").fill("30s")
    page.get_by_role("button", name="Add device").press("Enter")
    expect(page.get_by_text("192.0.2.7: added")).to_be_visible()
    assert page.url == fleet.url + "devices/192.0.2.7?did=add"
