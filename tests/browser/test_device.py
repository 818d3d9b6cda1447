"""The pages of a device in a real browser: plots that zoom, forms, keys, narrow screens."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

import pytest
from playwright.sync_api import Browser, Page, expect

from poller.bootstrap import Services
from poller.security.allowed_hosts import AllowedHosts
from poller.web import web_process
from tests.integration.conftest import services as services_fixture
from tests.integration.device_worlds import DeviceWorld

services = services_fixture
WIDTHS = (390, 1280)
#: A host on a LAN without TLS, of which browsers say less than of loopback.
NAME = "pages.poller.test"


@dataclass
class DeviceSite:
    """The pages on real stores, with the device `sw1`."""

    world: DeviceWorld
    url: str


@pytest.fixture
def device_site(services: Services) -> Iterator[DeviceSite]:
    world = DeviceWorld(services)
    listener = web_process.listen("127.0.0.1", 0)
    queries = web_process.backend_queries(services)
    server = web_process.server(queries, AllowedHosts([NAME]), services=services)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    yield DeviceSite(world, f"http://127.0.0.1:{listener.getsockname()[1]}/devices/sw1")
    server.should_exit = True
    thread.join(timeout=10)
    assert not thread.is_alive(), "an open page delayed the stop of the server"


def is_own(url: str) -> bool:
    return urlsplit(url).hostname in ("127.0.0.1", NAME)


@pytest.fixture
def visit(browser: Browser, device_site: DeviceSite) -> Iterator[object]:
    """A function that opens a page of the device. No page may have an error or look elsewhere."""
    contexts = []
    wrong: list[str] = []

    def open_page(path: str = "", **options: object) -> Page:
        options.setdefault("viewport", {"width": 1280, "height": 900})
        context = browser.new_context(**options)  # type: ignore[arg-type]
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda said: said.type == "error" and wrong.append(said.text))
        page.on("pageerror", lambda error: wrong.append(str(error)))
        page.on("request", lambda sent: is_own(sent.url) or wrong.append(sent.url))
        page.goto(device_site.url + path)
        return page

    yield open_page
    for context in contexts:
        context.close()
    # Chromium calls it an error that a header is of no use without TLS.
    assert [text for text in wrong if "Cross-Origin-Opener-Policy" not in text] == []


PLOTS = "/plots?target=snmp&interface=eth3&range=6h"
PATHS = ("", "/interfaces", "/gauges", "/metrics", "/events", "/config", PLOTS, "/targets/snmp")


def test_a_plot_is_zoomed_by_dragging_and_read_again(visit) -> None:
    """The address keeps the range, and the legend has the figures of what is shown."""
    page = visit(PLOTS)
    plot = page.locator("#plot-traffic .u-over")
    expect(plot).to_be_visible()
    box = plot.bounding_box()
    with page.expect_response("**/plots.json?*from=*") as answer:
        page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 50)
        page.mouse.down()
        page.mouse.move(box["x"] + box["width"] * 0.9, box["y"] + 60, steps=5)
        page.mouse.up()
    found = answer.value.json()["plots"][0]
    assert found["end"] - found["start"] == pytest.approx(0.2 * 6 * 3_600_000, rel=0.05)
    assert "from=" in page.url
    expect(page.locator("#read")).to_contain_text("raw polls")
    page.reload()
    expect(page.locator("#plot-traffic .u-over")).to_be_visible()


def test_a_plot_is_moved_by_keys_and_all_share_the_crosshair(visit) -> None:
    """Tab to a plot; arrows move the crosshair, + zooms, 0 goes back."""
    page = visit(PLOTS)
    plot = page.locator("#plot-traffic .drawn")
    expect(plot.locator(".u-over")).to_be_visible()
    plot.focus()
    plot.press("ArrowLeft")
    for figure in ("traffic", "utilisation"):
        cell = page.locator(f"#plot-{figure} tbody [data-at]").first
        expect(cell).to_be_visible()
    expect(page.locator("#plot-traffic tbody [data-at]").first).to_have_text("300 kbit/s")
    with page.expect_response("**/plots.json?*from=*"):
        plot.press("+")
    with page.expect_response("**/plots.json?*from=*") as answer:
        plot.press("0")
    found = answer.value.json()["plots"][0]
    assert found["end"] - found["start"] == 6 * 3_600_000


def length_and_end(answer) -> tuple[float, float]:
    """The length of what was read and its end, in minutes."""
    found = answer.value.json()["plots"][0]
    return (found["end"] - found["start"]) / 60_000, found["end"] / 60_000


def test_a_plot_is_panned_with_shift_and_the_mouse(visit) -> None:
    """It follows the mouse, and is read again when the button is released."""
    page = visit(PLOTS)
    box = page.locator("#plot-traffic .u-over").bounding_box()
    page.keyboard.down("Shift")
    page.mouse.move(box["x"] + box["width"] * 0.2, box["y"] + 50)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * 0.7, box["y"] + 50, steps=5)
    with page.expect_response("**/plots.json?*from=*") as answer:
        page.mouse.up()
    page.keyboard.up("Shift")
    length, end = length_and_end(answer)
    assert length == pytest.approx(360, abs=1)
    assert time.time() / 60 - end == pytest.approx(180, abs=5)


def test_one_finger_pans_a_plot_and_two_zoom_it(visit) -> None:
    """A finger that moves up or down scrolls the page, as everywhere."""
    page = visit(PLOTS, has_touch=True, is_mobile=True, viewport={"width": 390, "height": 844})
    plot = page.locator("#plot-traffic .u-over")
    fingers = page.context.new_cdp_session(page)

    def touch(kind: str, *shares: float) -> None:
        """Put fingers at these shares of the width of the plot."""
        box = plot.bounding_box()
        points = [
            {"x": box["x"] + box["width"] * share, "y": box["y"] + 60, "id": number}
            for number, share in enumerate(shares)
        ]
        fingers.send("Input.dispatchTouchEvent", {"type": kind, "touchPoints": points})

    plot.scroll_into_view_if_needed()
    touch("touchStart", 0.2)
    for share in (0.3, 0.5, 0.7):
        touch("touchMove", share)
    with page.expect_response("**/plots.json?*from=*") as answer:
        touch("touchEnd")
    length, end = length_and_end(answer)
    assert length == pytest.approx(360, abs=1)
    assert time.time() / 60 - end == pytest.approx(180, abs=10)

    expect(page.get_by_role("link", name="later")).to_be_visible()
    touch("touchStart", 0.4, 0.6)
    for apart in (0.15, 0.2, 0.3):
        touch("touchMove", 0.5 - apart, 0.5 + apart)
    with page.expect_response("**/plots.json?*from=*") as answer:
        touch("touchEnd")
    assert length_and_end(answer)[0] == pytest.approx(120, rel=0.1)


def test_a_crosshair_in_a_gap_has_no_value(visit) -> None:
    """The nearest poll is ten minutes away: its value is not that of this instant."""
    page = visit(PLOTS)
    box = page.locator("#plot-traffic .u-over").bounding_box()
    cell = page.locator("#plot-traffic tbody [data-at]").first
    for minutes_ago, text in ((250, "300 kbit/s"), (315, "–"), (345, "300 kbit/s")):
        page.mouse.move(box["x"] + box["width"] * (1 - minutes_ago / 360), box["y"] + 50)
        expect(cell).to_have_text(text)


def test_legend_and_table_are_those_of_the_range_that_is_shown(visit) -> None:
    """Also where nothing is known: no number of the range before is left."""
    page = visit(PLOTS + "&table=traffic")
    plot = page.locator("#plot-traffic .drawn")
    expect(plot.locator(".u-over")).to_be_visible()
    rows = page.get_by_role("table", name="Traffic").locator("tbody tr")
    before = rows.count()
    plot.press("+")
    expect(page.get_by_role("table", name="Traffic")).not_to_contain_text(f"{before} points")
    assert rows.count() < before
    now_ms = round(time.time() * 1000)
    page = visit(
        f"{PLOTS[:-9]}&from={now_ms - 46_800_000}&until={now_ms - 32_400_000}"
    )  # 13 h to 9 h
    numbers = page.locator("#plot-traffic .legend-table tbody")
    expect(numbers).to_contain_text("300 kbit/s")
    page.locator("#plot-traffic .drawn").press("Shift+ArrowLeft")
    expect(page.locator("#plot-traffic .notes")).to_have_text("no values for 4 h 0 m")
    expect(numbers).not_to_contain_text("kbit/s")


def test_a_plot_is_saved_as_a_picture(visit) -> None:
    """The script draws a PNG; without it there is the SVG of the server."""
    page = visit(PLOTS)
    with page.expect_download() as found:
        page.locator("#plot-traffic").get_by_role("button", name="PNG").click()
    assert found.value.suggested_filename == "traffic.png"
    with page.expect_download() as found:
        page.locator("#plot-traffic").get_by_role("link", name="SVG").click()
    assert found.value.suggested_filename == "traffic.svg"


def test_plots_are_complete_without_scripts(visit) -> None:
    """Pictures by the server; links zoom and pan."""
    page = visit(PLOTS, java_script_enabled=False)
    expect(page.locator("#plot-traffic svg")).to_be_visible()
    page.get_by_role("link", name="zoom in").click()
    assert "from=" in page.url
    expect(page.locator("#plot-traffic svg")).to_be_visible()
    page.get_by_role("link", name="Table of Traffic").click()
    expect(page.get_by_role("table", name="Traffic")).to_be_visible()


def test_a_form_works_without_scripts(device_site: DeviceSite, visit) -> None:
    """Pause with a reason, see it, resume."""
    page = visit(java_script_enabled=False)
    row = page.locator('[data-table="targets"] tbody tr')
    row.get_by_role("link", name="Pause").click()
    page.get_by_label("Why").fill("new fan")
    page.get_by_role("button", name="Pause").click()
    expect(row).to_contain_text(": new fan")
    expect(page.get_by_role("status").first).to_contain_text("paused")
    expect(row).to_contain_text("opened by hand by local")
    row.get_by_role("button", name="Resume").click()
    expect(row).not_to_contain_text("opened by hand")


def test_a_form_is_taken_over_plain_http_by_a_name(device_site: DeviceSite, visit) -> None:
    """Without TLS a browser says less of where a form comes from; the pages let it say enough."""
    page = visit(java_script_enabled=False)
    page.goto(device_site.url.replace("127.0.0.1", NAME))
    row = page.locator('[data-table="targets"] tbody tr')
    row.get_by_role("button", name="Disable").click()
    expect(row).to_contain_text("disabled")


def test_a_poll_now_shows_its_result_without_a_reload(device_site: DeviceSite, visit) -> None:
    """The key p asks; the page says when it is done."""
    page = visit()
    expect(page.locator("#live")).to_contain_text("live")
    page.keyboard.press("p")
    expect(page.get_by_text("result to come")).to_be_visible()
    device_site.world.finish("timeout", "no answer from 192.0.2.1")
    expect(page.get_by_text("no answer from 192.0.2.1").first).to_be_visible(timeout=15_000)


def test_the_strip_is_walked_with_arrow_keys(visit) -> None:
    """It is one stop of the Tab key; Enter selects the half hour."""
    page = visit()
    slots = page.locator("[data-slots] a")
    expect(page.locator('[data-slots] a[tabindex="0"]')).to_have_count(1)
    slots.last.focus()
    for _ in range(4):
        page.keyboard.press("ArrowLeft")
    expect(slots.nth(43)).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("table", name="Attempts of")).to_be_visible()


def test_no_page_scrolls_sideways(visit) -> None:
    """Long names and wide tables are wrapped or become cards."""
    page = visit(java_script_enabled=False)
    device = page.url
    too_wide = []
    for path in PATHS:
        page.goto(device + path)
        for width in WIDTHS:
            page.set_viewport_size({"width": width, "height": 800})
            if page.evaluate("document.documentElement.scrollWidth") > width:
                too_wide.append(f"{path} at {width}")
    assert too_wide == []
