"""A device goes dark in the simulator, with real programs: pages that are open say so."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from playwright.sync_api import Browser, expect

from poller.sim import fleet, sim_process
from poller.sim.sim_process import Running
from tests.acceptance.programs import POLLER, Up, eventually

pytestmark = pytest.mark.timeout(300)

#: Lists read themselves again every 15 s while they are watched.
WITHIN_MS = 40_000
DEVICE = "lonely"


@dataclass
class Polled:
    """Three simulated devices, one of them alone at its site, and who polls them."""

    up: Up
    simulator: Running

    @property
    def url(self) -> str:
        found = re.search(r"http://127\.0\.0\.1:\d+", self.up.text())
        assert found
        return found[0]


@pytest.fixture(scope="module")
def polled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Polled]:
    folder = tmp_path_factory.mktemp("dark")
    made = fleet.devices(3, seed=5, snmp_share=1.0, faulty_share=0)
    devices = [replace(made[0], name=DEVICE, site="hut"), *(
        replace(each, site="town") for each in made[1:]
    )]  # fmt: skip
    with sim_process.simulated(devices) as simulator:
        ports = {"POLLER_WEB_PORT": "0", "POLLER_FLOWER_PORT": "0"}
        up = Up(folder / "home", "--workers", "1", **ports)
        try:
            eventually(lambda: "page    http" in up.text(), 60, "the page")
            _add(up, folder / "fleet.json", fleet.inventory(devices, simulator.snmp, 0, "2s"))
            eventually(lambda: up.polls() >= 6, 60, "some polls")
            yield Polled(up, simulator)
        finally:
            up.stop(within_s=30)


def _add(up: Up, file: Path, rows: list[dict[str, object]]) -> None:
    for row in rows:
        for target in row["targets"]:  # type: ignore[attr-defined]
            target["options"] |= {"timeout": 0.2, "retries": 0}
    file.write_text(json.dumps(rows))
    secret = [*POLLER, "credential", "add", fleet.SNMP_CREDENTIAL, "--kind", "community"]
    subprocess.run(secret, env=up.env, input=f"{fleet.COMMUNITY}\n", text=True, check=True)
    assert up.run("device", "import", str(file)).returncode == 0


def test_three_open_pages_show_a_device_go_dark_and_come_back(
    browser: Browser, polled: Polled
) -> None:
    """The overview, the list and the device itself, none of them loaded again."""
    context = browser.new_context()
    overview, listed, device = (context.new_page() for _ in range(3))
    overview.goto(polled.url)
    listed.goto(f"{polled.url}/devices")
    device.goto(f"{polled.url}/devices/{DEVICE}")
    pages = (overview, listed, device)
    for page in pages:
        page.evaluate("window.sameDocument = true")
    row = listed.locator("tr", has=listed.get_by_role("link", name=DEVICE, exact=True))
    why = device.locator("section.why .reason")
    failing = overview.locator("[data-cell=failing]")
    expect(why).to_contain_text("the last poll was good")
    expect(failing).to_have_text("0")

    polled.simulator.darken("hut")
    expect(failing).to_have_text("1", timeout=WITHIN_MS)
    expect(device.locator(".about")).to_contain_text("1 failing", timeout=WITHIN_MS)
    expect(why).to_contain_text("timed out")
    expect(device.get_by_role("table", name="Attempts")).to_contain_text("no answer from")
    expect(row).to_contain_text("timeout: no answer from", timeout=WITHIN_MS)

    polled.simulator.darken()
    assert polled.up.run("poll", DEVICE).returncode == 0  # its breaker may be open
    expect(failing).to_have_text("0", timeout=WITHIN_MS)
    expect(why).to_contain_text("the last poll was good", timeout=WITHIN_MS)
    assert all(page.evaluate("window.sameDocument") for page in pages)
    context.close()


def test_an_open_page_of_a_removed_device_says_so(browser: Browser, polled: Polled) -> None:
    """It does not go on with what was known before."""
    context = browser.new_context()
    page = context.new_page()
    page.goto(f"{polled.url}/devices/{DEVICE}")
    assert polled.up.run("device", "rm", DEVICE, "--yes").returncode == 0
    expect(page.get_by_text(f'No device named "{DEVICE}"')).to_be_visible(timeout=WITHIN_MS)
    expect(page.get_by_text("It was removed at")).to_be_visible()
    page.get_by_role("link", name="Devices with a similar name").click()
    expect(page).to_have_title(re.compile("Devices"))
    context.close()
