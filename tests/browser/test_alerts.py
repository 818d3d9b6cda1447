"""The pages of alerts and maintenance in a real browser: keys, forms, narrow screens."""

from __future__ import annotations

import pytest
import test_device
from playwright.sync_api import Page, expect

from tests.integration import test_alert_page as world

services = test_device.services
device_site = test_device.device_site
visit = test_device.visit


def width(page: Page) -> int:
    return int(page.evaluate("document.documentElement.scrollWidth"))


@pytest.mark.parametrize("wide", [390, 1280])
def test_an_alert_is_acknowledged_by_keys_and_silenced_for_a_maintenance(
    visit, device_site: test_device.DeviceSite, wide: int
) -> None:
    """From a device to the list, a mark by `x`, then a maintenance; no page is wider than its
    screen.
    """
    [alert_id] = world.store(device_site.world.services, world.ALERT)
    page = visit(viewport={"width": wide, "height": 900})
    expect(page.locator("[data-table=device-alerts] tbody tr")).to_have_count(1)
    assert width(page) <= wide
    page.keyboard.press("g")
    page.keyboard.press("a")
    expect(page).to_have_url(device_site.url.replace("devices/sw1", "alerts"))
    page.keyboard.press("j")
    page.keyboard.press("x")
    expect(page.get_by_label(f"Mark alert {alert_id}")).to_be_checked()
    page.get_by_label("Note", exact=True).fill("on my way")
    assert width(page) <= wide
    page.get_by_role("button", name="Acknowledge").click()
    expect(page.get_by_role("status").first).to_have_text("1 alert acknowledged.")
    page.get_by_role("link", name=world.ALERT.text).click()
    assert width(page) <= wide
    page.keyboard.press("g")
    page.keyboard.press("m")
    expect(page.get_by_role("heading", name="Maintenance")).to_be_visible()
    page.get_by_label("Devices").fill("site:west")
    page.get_by_label("Reason").fill("rack")
    page.get_by_label("Ends").fill("2h")
    page.get_by_role("button", name="Add").click()
    expect(page.locator("[data-table=maintenance] tbody tr")).to_contain_text("active")
    assert width(page) <= wide
    page.get_by_role("button", name="End now").click()
    expect(page.locator(".empty")).to_contain_text("every alert is told")
