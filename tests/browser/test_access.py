"""Users, tokens, the own account and the audit log in a real browser, from the first user on."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from tests.browser.test_every_page import RULES
from tests.browser.test_web_process import Web, free_port, make_tables

PASSWORD = "correct horse battery staple"
NEW = "another long password"


@pytest.fixture
def web(tmp_path: Path, valkey_url: str) -> Iterator[Web]:
    """A web process on loopback, without any user."""
    make_tables(tmp_path)
    made = Web(tmp_path, valkey_url, free_port())
    made.wait()
    yield made
    made.stop()


@pytest.fixture
def page(browser: Browser, web: Web) -> Iterator[Page]:
    context = browser.new_context(viewport={"width": 1280, "height": 900})
    context.grant_permissions(["clipboard-read", "clipboard-write"])
    yield context.new_page()
    context.close()


def add_first_user(page: Page, web: Web) -> None:
    """Add the first user with the form, and log in as the next page asks."""
    page.goto(f"{web.url}/users")
    page.get_by_label("Name").fill("kim")
    page.get_by_label("Password needed", exact=True).fill(PASSWORD)
    page.get_by_label("Password again").fill(PASSWORD)
    page.get_by_role("button", name="Add the first user, and ask for a login").click()
    page.get_by_label("Name").fill("kim")
    page.get_by_label("Password").fill(PASSWORD)
    page.get_by_role("button", name="Log in").click()


def test_the_first_user_logs_in_and_works_with_the_keyboard(page: Page, web: Web) -> None:
    """`g` and a letter is a page, and `t` alone is the theme still; a token is copied once."""
    add_first_user(page, web)
    expect(page.get_by_role("status").first).to_have_text('User "kim" was added.')
    expect(page.get_by_role("link", name="kim").first).to_be_visible()
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    page.keyboard.press("g")
    page.keyboard.press("t")
    expect(page).to_have_url(f"{web.url}/tokens")

    page.get_by_label("Name").fill("ci")
    page.get_by_role("checkbox", name="read see everything").check()
    page.get_by_role("button", name="Make the token").click()
    made = page.locator(".value-once")
    value = made.locator("code").inner_text()
    made.get_by_role("button", name="Copy").click()
    expect(made.get_by_role("button", name="Copied")).to_be_visible()
    assert page.evaluate("navigator.clipboard.readText()") == value
    page.goto(f"{web.url}/tokens")
    assert value not in page.content()
    page.go_back()
    assert value not in page.content()

    page.goto(f"{web.url}/account")
    page.get_by_label("Old password").fill(PASSWORD)
    page.get_by_label("New password needed", exact=True).fill(NEW)
    page.get_by_label("New password again").fill(NEW)
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").first).to_contain_text("Your password was changed")
    page.keyboard.press("g")
    page.keyboard.press("h")
    expect(page.locator(".happened").first).to_contain_text("kim changed the own password")


def test_axe_finds_nothing_in_pages_with_a_user(page: Page, web: Web) -> None:
    """The walk through the demo sees these pages without users; errors and values have none."""
    add_first_user(page, web)
    found = {}
    for path in ("/users", "/users/kim", "/tokens", "/account", "/audit", "/audit?since=x"):
        page.goto(web.url + path)
        found[path] = _findings(page)
    page.goto(f"{web.url}/users/kim")
    page.get_by_role("button", name="Disable kim").click()
    found["refused"] = _findings(page)
    page.goto(f"{web.url}/tokens")
    page.get_by_label("Name").fill("ci")
    page.get_by_role("button", name="Make the token").click()
    found["no scope"] = _findings(page)
    page.get_by_role("checkbox", name="read see everything").check()
    page.get_by_role("button", name="Make the token").click()
    found["made"] = _findings(page)
    assert {name: each for name, each in found.items() if each} == {}


def _findings(page: Page) -> list[str]:
    """The findings of axe, and whether the page is wider than the narrowest window."""
    options = {"runOnly": {"type": "tag", "values": RULES}}
    answer = Axe().run(page, options=options).response
    found = [
        f"{each['id']}: {node['html'][:160]}"
        for each in answer["violations"]
        for node in each["nodes"]
    ]
    page.set_viewport_size({"width": 320, "height": 900})
    if page.evaluate("document.documentElement.scrollWidth > innerWidth"):
        found.append("wider than 320 px")
    page.set_viewport_size({"width": 1280, "height": 900})
    return found
