"""A day of an operator: from an empty start to a repaired fleet, with the keyboard alone."""

from __future__ import annotations

import os
import re
import shutil
import socket
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.request import Request, urlopen

import pytest
from playwright.sync_api import Browser, BrowserContext, Locator, Page, expect

from tests.acceptance.programs import POLLER, Up, eventually
from tests.conftest import missing, wait_until
from tests.integration.exporters import free_port

pytestmark = pytest.mark.timeout(400)

PASSWORD = "correct horse battery staple"
COMMUNITY, NEW_COMMUNITY = "first-community", "second-community"
TOKEN, NEW_TOKEN = "first-token", "second-token"
#: Presses of Tab after which a thing counts as out of reach.
MOST_TABS = 150
#: A poll every five seconds, on a machine with other work.
SOON_MS = 90_000
#: An open breaker tries again within seconds, so that a repaired device is back at once.
FAST = {"POLLER_BREAKER_BASE_S": "2", "POLLER_BREAKER_CAP_S": "4", "POLLER_BREAKER_AUTH_S": "4"}


class Agent:
    """An snmpd on one port, whose community can be changed as on a real switch."""

    def __init__(self, directory: Path) -> None:
        if shutil.which("snmpd") is None:
            missing("snmpd is not installed")
        self._directory = directory
        self.port = free_port(socket.SOCK_DGRAM)
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, community: str) -> None:
        """Start, or start again, with one community."""
        self.stop()
        config = self._directory / "snmpd.conf"
        config.write_text(
            f"agentaddress udp:127.0.0.1:{self.port}\n"
            f"rocommunity {community} 127.0.0.1\nsysName core-sw-1\n"
        )
        state = {"SNMP_PERSISTENT_DIR": str(self._directory / "state"), "MIBS": ""}
        log = self._directory / "snmpd.log"
        command = ["snmpd", "-C", "-c", str(config), "-f", "-Lf", str(log)]
        self._process = subprocess.Popen(command, env={**os.environ, **state})
        ask = ["snmpget", "-v2c", "-c", community, "-t1", "-r0", f"127.0.0.1:{self.port}"]
        wait_until(
            lambda: not subprocess.run([*ask, "1.3.6.1.2.1.1.5.0"], capture_output=True).returncode,
            "snmpd",
            self._process,
        )

    def stop(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait(timeout=10)


class Shop(ThreadingHTTPServer):
    """A web server that wants a token, which can be changed."""

    token = TOKEN

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Answer)
        threading.Thread(target=self.serve_forever, daemon=True).start()


class _Answer(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        assert isinstance(self.server, Shop)
        knows = self.headers["Authorization"] == f"Bearer {self.server.token}"
        self.send_response(200 if knows else 401)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Agent]:
    made = Agent(tmp_path_factory.mktemp("agent"))
    made.start(COMMUNITY)
    yield made
    made.stop()


@pytest.fixture(scope="module")
def shop() -> Iterator[Shop]:
    made = Shop()
    yield made
    made.shutdown()


@pytest.fixture(scope="module")
def platform(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Up]:
    """All of poller without any device, with one user."""
    home = tmp_path_factory.mktemp("journey") / "home"
    running = Up(home, "--workers", "1", **FAST)
    try:
        eventually(lambda: "http://127.0.0.1:" in running.text(), 60, "the address")
        command = ["user", "add", "kim", "--role", "admin"]
        added = subprocess.run(
            [*POLLER, *command],
            env=running.env,
            input=PASSWORD,
            text=True,
            cwd=home.parent,
            check=False,
            capture_output=True,
        )
        assert added.returncode == 0, added.stderr
        yield running
    finally:
        running.stop(within_s=30)


@pytest.fixture(scope="module")
def address(platform: Up) -> str:
    found = re.search(r"http://127\.0\.0\.1:\d+", platform.text())
    assert found
    site = found[0]
    front = Request(site, headers={"Accept": "text/html"})
    eventually(lambda: "/login" in urlopen(front, timeout=5).url, 60, "the page asks for a login")
    return site


@pytest.fixture(scope="module")
def context(browser: Browser) -> Iterator[BrowserContext]:
    made = browser.new_context(viewport={"width": 1280, "height": 900})
    made.set_default_timeout(20_000)
    yield made
    made.close()


class Hands:
    """A person who has a keyboard and no mouse."""

    def __init__(self, page: Page) -> None:
        self.page = page

    def labelled(self, label: str) -> Locator:
        """The field of a label, which may say that it is needed."""
        return self.page.get_by_label(re.compile(rf"^{label}( needed)?$"))

    def reach(self, wanted: Locator) -> Locator:
        """Press Tab until a thing has the focus."""
        expect(wanted).to_be_visible()
        for _ in range(MOST_TABS):
            if wanted.evaluate("each => each === document.activeElement"):
                return wanted
            self.page.keyboard.press("Tab")
        pytest.fail(f"{MOST_TABS} presses of Tab do not reach {wanted}")

    def press(self, wanted: Locator) -> None:
        """Follow a link or press a button."""
        self.reach(wanted)
        with self.page.expect_navigation():
            self.page.keyboard.press("Enter")

    def tick(self, wanted: Locator) -> None:
        self.reach(wanted)
        self.page.keyboard.press("Space")

    def type(self, label: str, text: str, place: int = 0) -> None:
        """Type into the field of a label, instead of what it had."""
        self.reach(self.labelled(label).nth(place))
        self.page.keyboard.press("Control+a")
        self.page.keyboard.insert_text(text)

    def choose(self, label: str, text: str) -> None:
        """Type the first letters of an option."""
        field = self.reach(self.labelled(label))
        self.page.keyboard.type(text)
        expect(field.locator("option:checked")).to_have_text(text)

    def button(self, name: str) -> None:
        self.press(self.page.get_by_role("button", name=name, exact=True))

    def link(self, name: str) -> None:
        self.press(self.page.get_by_role("link", name=name, exact=True).first)

    def go(self, key: str) -> None:
        """Go to a page of the navigation by its key."""
        self.page.evaluate("document.activeElement.blur()")
        self.page.keyboard.press("g")
        with self.page.expect_navigation():
            self.page.keyboard.press(key)


@pytest.fixture(scope="module")
def page(context: BrowserContext) -> Iterator[Page]:
    """One page for the whole day; it must not say an error."""
    faults: list[str] = []
    made = context.new_page()
    made.on("pageerror", lambda error: faults.append(str(error)))
    yield made
    assert faults == []


@pytest.fixture(scope="module")
def hands(page: Page) -> Hands:
    return Hands(page)


def is_well(page: Page) -> None:
    """The first target of the device says the word ok, not only a word with these letters."""
    target = page.locator('[data-table="targets"] tbody tr').first
    expect(target).to_contain_text(re.compile(r"\bok\b"), timeout=SOON_MS)


def an_empty_platform_asks_for_a_login_and_says_how_to_begin(
    hands: Hands, page: Page, address: str
) -> None:
    """The first page after the login leads to the first device."""
    page.goto(address)
    hands.type("Name", "kim")
    hands.type("Password", PASSWORD)
    hands.button("Log in")
    expect(page.get_by_role("link", name=re.compile("add", re.I)).first).to_be_visible()


def a_device_is_discovered_tested_added_and_polled(hands: Hands, page: Page, agent: Agent) -> None:
    """A real agent says its name, a worker polls it once, and then every five seconds."""
    hands.go("e")
    hands.link("Add a credential")
    hands.type("Name", "core-snmp")
    hands.type("Community", COMMUNITY)
    hands.button("Store")
    hands.go("d")
    hands.link("Add a device")
    hands.type("Address", f"127.0.0.1:{agent.port}")
    hands.type("Site", "ams")
    hands.choose("Credential", "core-snmp")
    hands.button("Look what answers")
    expect(page.get_by_label("Name", exact=True).first).to_have_value("core-sw-1")
    hands.type("Every", "5s")
    hands.type("Every", "5s", place=1)
    hands.button("Test poll")
    expect(page.locator("#trials")).to_contain_text("sysUpTime")
    hands.button("Add device")
    expect(page.get_by_role("heading", level=1)).to_contain_text("core-sw-1")
    is_well(page)


def a_broken_community_is_said_without_a_reload_and_mended_by_a_rotation(
    hands: Hands, page: Page, agent: Agent
) -> None:
    """The page of the device says why within some polls, and that it is well again."""
    agent.start(NEW_COMMUNITY)
    expect(page.locator(".why").first).to_contain_text("community", timeout=SOON_MS)
    hands.go("e")
    hands.link("core-snmp")
    hands.type("Community", NEW_COMMUNITY)
    hands.button("Change")
    expect(page.get_by_role("status").first).to_contain_text("core-snmp")
    hands.go("d")
    hands.link("core-sw-1")
    expect(page.locator(".why").first).not_to_contain_text("community", timeout=SOON_MS)
    is_well(page)


def a_site_is_paused_until_an_end(hands: Hands, page: Page) -> None:
    """A maintenance of a site has a reason and an end in view."""
    hands.go("m")
    hands.type("Devices", "site:ams")
    hands.type("Reason", "new firmware")
    hands.type("Ends", "2h")
    hands.button("Add")
    expect(page.get_by_role("row").filter(has_text="new firmware")).to_contain_text("site:ams")


HEADER = "name,address,site,credential,collector,interval,options"
WRONG = f"""{HEADER}
shop-1,127.0.0.1,ber,shop-token,http,5 min,
shop-2,not an address,ber,shop-token,http,5s,
shop-3,127.0.0.1,ber,shop-token,htpp,5s,
"""


def a_file_with_three_errors_is_refused_whole_and_taken_when_it_is_right(
    hands: Hands, page: Page, shop: Shop
) -> None:
    """Every bad line is named at once; the right file is shown before it is imported."""
    shop.token = NEW_TOKEN
    hands.go("e")
    hands.link("Add a credential")
    hands.link("token")
    hands.type("Name", "shop-token")
    hands.type("Token", TOKEN)
    hands.button("Store")
    hands.go("d")
    hands.link("Import")
    hands.type("Its text.*", WRONG)
    hands.button("Preview")
    expect(page.locator('[data-table="problems"] tbody tr')).to_have_count(3)
    port = shop.server_address[1]
    lines = [
        f"shop-{n},127.0.0.1,ber,shop-token,http,5s,port={port} auth=bearer" for n in (1, 2, 3)
    ]
    hands.type("Its text.*", "\n".join([HEADER, *lines]))
    hands.button("Preview")
    expect(page.locator('[data-table="import-changes"]')).to_contain_text("shop-3")
    hands.button("Import exactly this")
    expect(page.get_by_role("status").first).to_contain_text("3 devices")


def letters_are_requeued_together_when_their_cause_is_gone(
    hands: Hands, page: Page, shop: Shop
) -> None:
    """Three refused logins are one group with one button."""
    hands.go("x")
    group = page.locator('[data-table="letter-groups"] tbody tr')
    expect(group.locator('[data-label="letters"]')).to_have_text("3", timeout=SOON_MS)
    shop.token = TOKEN
    hands.press(group.get_by_role("button", name="Requeue…"))
    hands.press(page.get_by_role("button", name=re.compile("^Requeue 3")))
    hands.go("x")
    expect(page.get_by_role("heading", level=1)).to_be_visible()
    expect(group).to_have_count(0, timeout=SOON_MS)


def a_plot_is_zoomed_out_to_thirty_days(hands: Hands, page: Page) -> None:
    """The range is in the address, and keys move and zoom the plot."""
    hands.go("d")
    hands.link("core-sw-1")
    hands.link("Interfaces")
    hands.link("lo")
    hands.link("30d")
    expect(page).to_have_url(re.compile("30d"))
    plot = page.locator(".drawn canvas").first
    expect(plot).to_be_visible()
    hands.reach(page.locator(".drawn[tabindex='0'], .drawn [tabindex='0']").first)
    page.keyboard.press("+")
    expect(page).not_to_have_url(re.compile("30d"))


def test_an_operator_works_from_an_empty_start_with_the_keyboard_alone(
    hands: Hands, page: Page, address: str, agent: Agent, shop: Shop
) -> None:
    """A real agent, a real web server and all processes: each step stands on the one before."""
    an_empty_platform_asks_for_a_login_and_says_how_to_begin(hands, page, address)
    a_device_is_discovered_tested_added_and_polled(hands, page, agent)
    a_broken_community_is_said_without_a_reload_and_mended_by_a_rotation(hands, page, agent)
    a_site_is_paused_until_an_end(hands, page)
    a_file_with_three_errors_is_refused_whole_and_taken_when_it_is_right(hands, page, shop)
    letters_are_requeued_together_when_their_cause_is_gone(hands, page, shop)
    a_plot_is_zoomed_out_to_thirty_days(hands, page)
