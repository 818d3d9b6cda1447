"""The pages of the fleet in a browser, on real stores: search, keys, live rows, actions."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import redis
import uvicorn
from playwright.sync_api import Browser, BrowserContext, Page, expect

from poller import bootstrap
from poller.bootstrap import Services
from poller.db import migrate
from poller.db.inventory import devices, imports, inventory_feed
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.web import web_process

BACKGROUNDS = {"light": "rgb(255, 255, 255)", "dark": "rgb(14, 19, 24)"}


@dataclass
class Fleet:
    """A server on the stores of a small fleet."""

    services: Services
    server: uvicorn.Server
    url: str

    @property
    def streams(self) -> int:
        app = self.server.config.app
        return int(app.state.stream_slots.open)  # type: ignore[union-attr]

    def tell(self, device: str, status: Status) -> None:
        """Give every target of a device a status, as a worker does."""
        with inventory_feed.all_specs(self.services.engine) as stored:
            ids = [spec.id for spec in stored.specs]
        names = inventory_feed.poll_targets(self.services.engine, ids)
        for target_id, target in names.items():
            if target.device == device:
                key = self.services.keys.status
                self.services.redis.hset(key, str(target_id), status.pack())
        self.services.board.scripts.run("recount", [])


@pytest.fixture
def fleet(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[Fleet]:
    """Sixty devices at two sites, all well."""
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = bootstrap.services()
    migrate.upgrade(services.engine)
    rows = [_row(number) for number in range(60)]
    imports.apply_import(services.engine, rows)
    now_ms = services.board.now_ms()
    with inventory_feed.all_specs(services.engine) as stored:
        specs = list(stored.specs)
    services.board.place("", [(spec, now_ms) for spec in specs], stored.version)
    listener = web_process.listen("127.0.0.1", 0)
    backend = web_process.backend_queries(services)
    server = web_process.server(backend, services=services)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    made = Fleet(services, server, f"http://127.0.0.1:{listener.getsockname()[1]}/")
    well = Status(State.OK, now_ms, now_ms, now_ms, now_ms)
    for target_id in [spec.id for spec in specs]:
        services.redis.hset(services.keys.status, str(target_id), well.pack())
    services.board.scripts.run("recount", [])
    yield made
    server.should_exit = True
    thread.join(timeout=10)
    services.engine.dispose()
    bootstrap.services.cache_clear()


def _row(number: int) -> imports.Row:
    site = ("west", "east")[number % 2]
    device = DeviceDraft(name=f"ap-{number:02}.{site}", address=f"10.0.0.{number}", site=site)
    return imports.Row(device, [TargetDraft(collector="ping")])


@pytest.fixture
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(10_000)
    yield made
    made.close()


@pytest.fixture
def page(context: BrowserContext) -> Iterator[Page]:
    made = context.new_page()
    faults: list[str] = []
    made.on("pageerror", lambda error: faults.append(str(error)))
    yield made
    assert faults == []


def rows(page: Page) -> object:
    return page.locator('[data-table="devices"] tbody tr')


def failing(fleet: Fleet) -> Status:
    now_ms = fleet.services.board.now_ms()
    return Status(
        State.FAILING, now_ms, now_ms, now_ms, now_ms - 9_000, 3, 0, "timeout", "no answer in 2 s"
    )


def test_a_search_finds_while_it_is_typed(fleet: Fleet, page: Page) -> None:
    """The address follows, so the view can be shared; the facets and the file follow, too."""
    page.goto(f"{fleet.url}devices")
    expect(rows(page)).to_have_count(50)
    page.get_by_label("Filter").fill("site:west name:ap-0*")
    expect(rows(page)).to_have_count(5)
    assert "where=site%3Awest" in page.url
    expect(page.locator(".matches")).to_have_text("5 devices")
    expect(page.get_by_role("link", name="CSV")).to_have_attribute(
        "href", "devices/-/devices.csv?where=site%3Awest+name%3Aap-0%2A"
    )
    page.get_by_label("Filter").fill("colour:red")
    expect(page.get_by_role("alert")).to_contain_text('A filter has no key "colour".')
    page.get_by_label("Filter").fill("")
    expect(rows(page)).to_have_count(50)


def test_a_filter_is_completed_while_it_is_typed(fleet: Fleet, page: Page) -> None:
    """The last word is completed, and what was typed before stays."""
    page.goto(f"{fleet.url}devices")
    page.get_by_label("Filter").press_sequentially("state:ok site:w")
    option = page.locator("#words option")
    expect(option).to_have_attribute("value", "state:ok site:west")


def test_three_open_pages_show_a_failure_without_a_reload(
    fleet: Fleet, context: BrowserContext
) -> None:
    """One stream serves them all; rows and causes appear, and the titles have the count."""
    pages = [context.new_page() for _ in range(3)]
    for page, path in zip(pages, ("", "devices?where=name:ap-04.west", "sites"), strict=True):
        page.goto(f"{fleet.url}{path}")
        expect(page.locator("#live")).to_have_text("● live")
    overview, devices_page, sites = pages
    assert fleet.streams == 1
    fleet.tell("ap-04.west", failing(fleet))
    cause = overview.get_by_role("link", name="site:west state:failing code:timeout")
    expect(cause).to_be_visible()
    expect(sites.locator('[data-key="west"] .state')).to_contain_text("failing", timeout=20_000)
    devices_page.bring_to_front()
    expect(devices_page.locator('[data-key="ap-04.west"] .state')).to_contain_text(
        "timeout", timeout=40_000
    )
    assert devices_page.title().startswith("(")
    cause.click()
    expect(rows(overview)).to_have_count(1)
    expect(rows(overview)).to_contain_text("timeout: no answer in 2 s")
    assert fleet.streams == 1


def test_everything_is_reached_by_keys(fleet: Fleet, page: Page) -> None:
    """Search, pages, rows, marks, help; and keys can be turned off."""
    page.goto(fleet.url)
    expect(page.locator("#live")).to_have_text("● live")
    page.keyboard.press("/")
    expect(page.locator("#search")).to_be_focused()
    page.keyboard.type("ap-07")
    page.keyboard.press("Enter")
    expect(rows(page)).to_have_count(1)
    page.keyboard.press("j")
    expect(rows(page)).to_be_focused()
    page.keyboard.press("x")
    expect(rows(page).get_by_role("checkbox")).to_be_checked()
    page.keyboard.press("k")
    page.keyboard.press("p")
    expect(page.get_by_role("heading", level=1)).to_have_text("Poll 1 target now?")
    page.get_by_role("link", name="Leave it").click()
    page.keyboard.press("j")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_have_text("ap-07.east")
    page.keyboard.press("g")
    page.keyboard.press("s")
    expect(page.get_by_role("heading", level=1)).to_have_text("Sites")
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_be_visible()
    page.get_by_label("Keys are on").uncheck()
    page.get_by_role("button", name="Close").click()
    page.keyboard.press("/")
    expect(page.locator("#search")).not_to_be_focused()


def test_marked_devices_are_disabled_and_enabled_again_without_scripts(
    fleet: Fleet, browser: Browser
) -> None:
    """The page says how many before anything is done."""
    context = browser.new_context(java_script_enabled=False)
    page = context.new_page()
    page.goto(f"{fleet.url}devices?where=site:west")
    for name in ("ap-02.west", "ap-04.west"):
        page.get_by_label(f"Mark {name}").check()
    page.get_by_role("button", name="Disable…").click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Disable 2 devices?")
    assert _disabled(fleet) == []
    page.get_by_role("button", name="Disable 2 devices").click()
    expect(page.get_by_text("2 devices disabled.")).to_be_visible()
    assert _disabled(fleet) == ["ap-02.west", "ap-04.west"]
    page.get_by_role("button", name="Take it back…").click()
    page.get_by_role("button", name="Take back the change of 2 devices").click()
    assert _disabled(fleet) == []
    context.close()


def _disabled(fleet: Fleet) -> list[str]:
    return [
        row.name for row in devices.listing(fleet.services.engine, limit=None) if not row.enabled
    ]


@pytest.mark.parametrize("theme", BACKGROUNDS)
@pytest.mark.parametrize("width", [320, 720, 1280, 3840])
def test_every_page_fits_every_width(
    fleet: Fleet, browser: Browser, width: int, theme: str
) -> None:
    """Without scripts, and without scrolling sideways."""
    fleet.tell("ap-04.west", failing(fleet)._replace(message="x" * 400))
    context = browser.new_context(
        java_script_enabled=False, viewport={"width": width, "height": 900}
    )
    page = context.new_page()
    for path in ("devices", "devices?where=state:failing", "sites", "wall", "devices/-/facets"):
        joined = "&" if "?" in path else "?"
        page.goto(f"{fleet.url}{path}{joined}theme={theme}")
        expect(page.locator("body")).to_have_css("background-color", BACKGROUNDS[theme])
        assert page.evaluate("document.documentElement.scrollWidth") <= width, path
    context.close()
