"""The pages of a device on real stores: what they show, what they do, and who may."""

from __future__ import annotations

import csv
import io
import re
import xml.etree.ElementTree as ET
from dataclasses import dataclass

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.db.record import run_ledger
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Scope
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.domain.failures.outcome import Result
from poller.domain.fleet.day_slots import SLOT_MS
from poller.domain.record.run import Run
from poller.security import token_values
from poller.service import authors
from poller.service.inventory import device_actions
from poller.state.board.breakers import Breakers
from poller.web import assets
from poller.web.access import form_cookies
from poller.web.assets import Assets
from tests.integration import api_clients
from tests.integration.audited_actions import audited
from tests.integration.device_worlds import DeviceWorld


@dataclass
class Pages:
    """A browser without scripts: pages as text, forms as their redirects."""

    client: api_clients.TestClient

    def get(self, path: str, status: int = 200) -> str:
        response = self.client.get(path, headers={"Accept": "text/html"})
        assert response.status_code == status, response.text
        return response.text

    def post(self, path: str, **fields: str) -> tuple[int, str]:
        if form_cookies.PLAIN not in self.client.cookies:
            self.get("/devices/sw1")
        token = token_values.form_token(self.client.cookies[form_cookies.PLAIN])
        sent = {"csrf_token": token, **fields}
        response = self.client.post(path, data=sent, follow_redirects=False)
        return response.status_code, response.headers.get("Location", response.text)


@pytest.fixture
def world(services: Services) -> DeviceWorld:
    return DeviceWorld(services)


@pytest.fixture
def pages(world: DeviceWorld) -> Pages:
    return Pages(api_clients.client(world.services))


def person(name: str) -> Actor:
    return Actor(name, ActorKind.USER, "192.0.2.9", frozenset(Scope))


def reader(world: DeviceWorld) -> Pages:
    return Pages(api_clients.client(world.services, [Scope.READ]))


def cells(html: str, table: str) -> list[list[str]]:
    """The texts of the cells of a table."""
    part = html[html.index(f'data-table="{table}"') :]
    body = part[part.index("<tbody>") : part.index("</tbody>")]
    found = []
    for row in body.split("</tr>")[:-1]:
        texts = re.findall(r"<t[hd][^>]*>(.*?)</t[hd]>", row, re.DOTALL)
        found.append([re.sub(r"<[^>]+>", "", text).strip() for text in texts])
    return found


def test_the_first_page_says_why_before_all(world: DeviceWorld, pages: Pages) -> None:
    """The sentence of `poller why`, then the last day, the targets and the attempts."""
    world.finish("timeout", "no answer from 192.0.2.1", failures=2)
    html = pages.get("/devices/sw1")
    assert "timed out" in html[html.index('id="why"') : html.index('id="day"')]
    assert html.index('id="why"') < html.index("<caption>Targets") < html.index("<caption>Attempts")
    assert len(re.findall(r'<a class="(?:ok|failed|none|partial)" href', html)) == 48
    [row] = cells(html, "targets")
    assert row[1].startswith("■ failing")
    assert row[6] == "timeout: no answer from 192.0.2.1"
    assert len(cells(html, "attempts")) == 20


def test_a_slot_shows_its_attempts(world: DeviceWorld, pages: Pages) -> None:
    """The failed poll of two hours ago is found by the red bar."""
    html = pages.get("/devices/sw1")
    [address] = re.findall(r'<a class="failed" href="\.\./([^"#]+)', html)
    shown = pages.get(f"/{address}")
    assert any("no answer in 3 tries" in row[-1] for row in cells(shown, "attempts"))
    assert 'aria-current="true" title=' in shown


def test_a_slot_of_very_many_polls_shows_those_that_failed(
    world: DeviceWorld, pages: Pages
) -> None:
    """They are why the slot was selected; the newest good ones are beside them."""
    slot_ms = world.now_ms // SLOT_MS * SLOT_MS - SLOT_MS
    bad = {"outcome": Result.FAILED, "error_code": "timeout", "message": "only once"}
    first = Run(world.id, slot_ms + 1_000, **bad)
    good = [Run(world.id, slot_ms + n * 10_000, Result.OK) for n in range(1, 150)]
    run_ledger.write(world.services.engine, [first, *good])
    html = pages.get(f"/devices/sw1?slot={slot_ms}")
    rows = cells(html, "attempts")
    assert rows[-1][-1] == "timeout: only once"
    assert re.search(rf"shown are {len(rows)} of \d+: those that were not good", html)
    assert "shown are" not in pages.get(f"/devices/sw1?slot={slot_ms - SLOT_MS}")


def test_interfaces_are_listed_as_people_know_them(pages: Pages) -> None:
    """Name, alias, status, speed, both directions, 95th percentile and use of the link."""
    html = pages.get("/devices/sw1/interfaces")
    rows = cells(html, "interfaces")
    assert [row[0].split()[0] for row in rows] == ["eth1", "eth2", "eth3"]
    assert rows[0][0] == "eth1 uplink 1 &lt;b&gt;"
    assert (rows[0][1], rows[1][1], rows[0][2]) == ("● up", "■ down", "1 Mbit/s")
    assert rows[2][4:7] == ["300 kbit/s", "300 kbit/s", "30 %"]
    assert rows[2][7] == "150 kbit/s"
    assert float(rows[0][10].replace(",", "")) == pytest.approx(10, abs=2)
    assert html.count("<svg") >= 3
    [found] = cells(pages.get("/devices/sw1/interfaces?search=uplink+2"), "interfaces")
    assert found[0].startswith("eth2")


def test_plots_show_an_interface_with_its_gap(pages: Pages) -> None:
    """Traffic, use and errors, drawn by the server; half an hour without polls is shaded."""
    html = pages.get("/devices/sw1/plots?target=snmp&interface=eth3&range=6h")
    figures = re.findall(r'data-plot-id="(\w+)"', html)
    assert figures == ["traffic", "utilisation", "errors"]
    pictures = [ET.fromstring(text) for text in re.findall(r"<svg.*?</svg>", html)]
    assert all(part.find("rect[@class='gap']") is not None for part in pictures)
    assert "no values for" in html
    assert "speed 1 Mbit/s" not in html.split("</figcaption>")[0]  # far above what is drawn


def test_a_plot_is_also_a_table_a_file_and_data(pages: Pages) -> None:
    """The same points in every form."""
    query = "target=snmp&interface=eth1&range=1h"
    rows = cells(pages.get(f"/devices/sw1/plots?{query}&table=traffic"), "points")
    assert len(rows) >= 58
    assert rows[5][1:3] == ["100 kbit/s", "50 kbit/s"]
    text = pages.client.get(f"/devices/sw1/plots.csv?{query}&plot=traffic").text
    points = [row for row in csv.DictReader(io.StringIO(text)) if row["metric"] == "ifHCInOctets"]
    assert abs(len(points) - len(rows)) <= 1
    assert float(points[-1]["value"]) == pytest.approx(12_500, rel=0.01)
    svg = pages.client.get(f"/devices/sw1/plots.svg?{query}&plot=traffic")
    assert "attachment" in svg.headers["Content-Disposition"]
    ET.fromstring(svg.text)
    data = pages.client.get(f"/devices/sw1/plots.json?{query}").json()
    [receives, sends] = data["plots"][0]["lines"]
    numbers = [each for each in receives["value"] if each]
    assert numbers[-1] == pytest.approx(100_000, rel=0.01)
    assert len(sends["value"]) == len(data["plots"][0]["at"])


def test_gauges_are_grouped_and_have_their_units(pages: Pages) -> None:
    """Storage has its share of the whole."""
    html = pages.get("/devices/sw1/gauges")
    assert "<caption>Processor and load" in html
    [row] = cells(html, "gauges-2")
    assert row[0] == "/var"
    assert row[1].split() == ["0.98", "MiB", "25", "%"] or row[1].startswith("1000 KiB")
    shown = pages.get("/devices/sw1/plots?target=snmp&metric=hrProcessorLoad&label=hrDeviceIndex=1")
    assert "<svg" in shown


def test_all_metrics_can_be_searched(pages: Pages) -> None:
    """Words of metric and labels; an info has no plot."""
    rows = cells(pages.get("/devices/sw1/metrics?search=octets+eth2"), "metrics")
    assert [row[0] for row in rows] == ["ifHCInOctets", "ifHCOutOctets"]
    html = pages.get("/devices/sw1/metrics?search=sysName")
    assert "plots?target=snmp&amp;metric=sysName" not in html
    assert "No value has" in pages.get("/devices/sw1/metrics?search=zzz")


def test_configuration_says_where_each_value_comes_from(pages: Pages) -> None:
    """An option of the target beside the defaults of its collector."""
    found = {row[0]: row[1:] for row in cells(pages.get("/devices/sw1/config"), "config-snmp")}
    assert found["option modules"] == ["if_mib", "target"]
    assert found["interval"][0] == "1m"
    assert found["option version"][1] == "default of collector snmp"


def test_a_device_of_twenty_targets_is_within_its_budget(world: DeviceWorld, pages: Pages) -> None:
    """Also if all of them fail. What is usual is left out, and one link away."""
    world.add_targets(19)
    world.finish("timeout", "no answer from 192.0.2.1 " * 4, failures=2)
    for page in ("", "/config", "/interfaces"):
        html = pages.get(f"/devices/sw1{page}")
        assert len(re.findall(r"<[a-z]", html)) <= 1_500, page
    html = pages.get("/devices/sw1/config")
    assert ["option port", "1161", "target"] in cells(html, "config-t07")
    assert "option version" not in html
    whole = cells(pages.get("/devices/sw1/config?target=t07"), "config-t07")
    assert ["option version", "2c", "default of collector snmp"] in whole


def test_targets_that_are_well_are_one_line_of_many(world: DeviceWorld, pages: Pages) -> None:
    """Those that need somebody come first; the others can be opened."""
    world.add_targets(5)
    world.finish()
    world.lead()
    html = pages.get("/devices/sw1")
    why = html[html.index('id="why"') : html.index('id="day"')]
    assert "6 targets are polled as planned" in why
    assert why.index("polled as planned") < why.index("<li><b>t00</b>")
    assert "Details of" not in why


def test_a_poll_now_shows_its_result(world: DeviceWorld, pages: Pages) -> None:
    """The page that answers waits for the result and then has it."""
    status, where = pages.post("/devices/sw1/act", action="poll", target="snmp")
    assert (status, where.split("=")[0]) == (303, "../sw1?polls")
    assert "1 result to come" in pages.get(f"/devices/{where.removeprefix('../')}")
    world.finish()
    html = pages.get(f"/devices/{where.removeprefix('../')}")
    assert "Polled." in html
    assert [row.action for row in audited(world.services)][-1] == "target.poll"


def test_pause_and_resume(world: DeviceWorld, pages: Pages) -> None:
    """A pause has a reason and an end; the page says who paused and why, and offers to resume."""
    assert 'href="../devices/sw1/pause"' in pages.get("/devices/sw1")
    asked = {"target": "snmp", "length": "2h", "reason": "new <b>firmware</b>"}
    status, where = pages.post("/devices/sw1/pause", **asked)
    assert (status, where) == (303, "../sw1?did=pause&target=snmp")
    html = pages.get("/devices/sw1?did=pause&target=snmp")
    assert "sw1/snmp: paused" in html
    assert "ci opened its breaker by hand" in html
    assert ", for another 2 h: new &lt;b&gt;firmware&lt;/b&gt;." in html
    assert cells(html, "targets")[0][6].endswith("m: new &lt;b&gt;firmware&lt;/b&gt;")
    assert 'name="action" value="resume"' in html
    assert "/pause" not in html
    assert audited(world.services)[-1].after["reason"] == "new <b>firmware</b>"
    pages.post("/devices/sw1/act", action="resume", target="snmp")
    now_ms = world.board.now_ms()
    assert not Breakers(world.board).show([world.id], now_ms)[world.id].is_open


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"length": "2h", "reason": "  "}, "reason: it is empty"),
        ({"length": "soon", "reason": "kept"}, "length: "),
        ({"length": "90d", "reason": "kept"}, "length: it is not between 1s and 30d"),
        ({"length": "2h", "reason": "ke\x07pt"}, "reason: it has characters"),
    ],
)
def test_a_wrong_pause_keeps_what_was_typed(
    world: DeviceWorld, pages: Pages, fields: dict[str, str], words: str
) -> None:
    """The error stands beside its field, and says the difference to a maintenance."""
    status, html = pages.post("/devices/sw1/pause", **fields)
    assert status == 422
    assert html.count(words[:1].upper() + words[1:]) + html.count(words) == 2
    assert html.count('aria-invalid="true"') == 1
    assert f'value="{fields["length"]}"' in html
    assert "In a <a" in html
    assert audited(world.services) == []


def test_a_breaker_that_failures_opened_is_reset(world: DeviceWorld, pages: Pages) -> None:
    """Nobody paused it, so nobody resumes it."""
    breaker = Breaker(trips=2, since_ms=world.now_ms, probe_ms=world.now_ms + 60_000)
    world.finish("timeout", "no answer", failures=4, breaker=breaker)
    html = pages.get("/devices/sw1")
    assert "Reset breaker" in html
    assert 'value="resume"' not in html
    pages.post("/devices/sw1/act", action="reset", target="snmp")
    assert "Reset breaker" not in pages.get("/devices/sw1?did=reset&target=snmp")
    assert [row.action for row in audited(world.services)] == ["breaker.reset"]


def test_a_dead_letter_is_requeued(world: DeviceWorld, pages: Pages) -> None:
    """The button is there only for a dead letter; without one it is refused."""
    assert 'value="requeue"' not in pages.get("/devices/sw1")
    world.finish("auth_failed", "wrong digest", reason=Reason.AUTH_FAILED, parked_ms=world.now_ms)
    assert 'value="requeue"' in pages.get("/devices/sw1")
    status, text = pages.post("/devices/sw1/act", action="requeue", target="snmp")
    assert status == 404  # on the board, and not in the database: the leader records it later
    assert "is no dead letter" in text


def test_enable_and_disable(world: DeviceWorld, pages: Pages) -> None:
    """A disabled target offers only to be enabled."""
    pages.post("/devices/sw1/act", action="disable", target="snmp")
    assert not targets.show(world.services.engine, "sw1", "snmp").enabled
    pages.post("/devices/sw1/act", action="enable", target="snmp")
    pages.post("/devices/sw1/act", action="disable")
    html = pages.get("/devices/sw1?did=disable")
    assert "this device is disabled" in html
    assert "sw1: disabled" in html


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"action": "explode"}, "there is no action"),
    ],
)
def test_a_wrong_action_is_refused_by_its_field(
    pages: Pages, fields: dict[str, str], words: str
) -> None:
    """Nothing is done."""
    status, text = pages.post("/devices/sw1/act", **fields)
    assert status == 422
    assert words in text


def test_what_one_may_not_do_is_not_shown_and_refused(world: DeviceWorld) -> None:
    """A reader sees the device and no button; a form that was made by hand is refused."""
    pages = reader(world)
    html = pages.get("/devices/sw1")
    assert 'name="action"' not in html
    assert "/targets/snmp" not in html
    for action in ("poll", "disable", "drop"):
        status, text = pages.post("/devices/sw1/act", action=action, target="snmp")
        assert status == 403
        assert "needs the scope" in text
    pages.get("/devices/sw1/targets/snmp", 403)
    pages.get("/devices/sw1/pause", 403)
    assert pages.post("/devices/sw1/pause", length="2h", reason="x")[0] == 403
    assert audited(world.services) == []


def test_a_token_of_another_site_does_not_see_the_device(world: DeviceWorld) -> None:
    """Every page of the device is unknown to it."""
    pages = Pages(api_clients.client(world.services, [Scope.ADMIN], site="east"))
    for page in (
        "",
        "/interfaces",
        "/gauges",
        "/metrics",
        "/events",
        "/config",
        "/targets/snmp",
        "/pause",
    ):
        pages.get(f"/devices/sw1{page}", 404)
    pages.get("/devices/sw1/plots?target=snmp&interface=eth1", 404)
    pages.get("/devices/other")
    assert pages.post("/devices/sw1/act", action="poll")[0] == 404
    assert pages.post("/devices/sw1/pause", length="2h", reason="x")[0] == 404


def test_a_form_edits_interval_and_options(world: DeviceWorld, pages: Pages) -> None:
    """Only what was changed is stored."""
    html = pages.get("/devices/sw1/targets/snmp")
    [version] = re.findall(r'name="version" value="([^"]+)"', html)
    sent = {"version": version, "interval": "5m", "option.modules": "if_mib,system"}
    status, where = pages.post("/devices/sw1/targets/snmp", **sent)
    assert (status, where) == (303, "../../sw1?did=edit&target=snmp")
    stored = targets.show(world.services.engine, "sw1", "snmp")
    assert stored.interval_ms == 300_000
    assert stored.options["modules"] == ["if_mib", "system"]
    status, text = pages.post("/devices/sw1/targets/snmp", version=version, interval="7m")
    assert status == 412
    assert "Nothing was changed" in text


def test_a_wrong_option_has_the_error_of_the_command_line(world: DeviceWorld, pages: Pages) -> None:
    """The error stands beside its field, which keeps what was typed."""
    status, html = pages.post("/devices/sw1/targets/snmp", **{"option.version": "9"})
    assert status == 422
    assert "Nothing was changed" in html
    assert 'aria-invalid="true"' in html
    assert targets.show(world.services.engine, "sw1", "snmp").options == {"modules": ["if_mib"]}


def test_a_form_of_another_site_is_refused(world: DeviceWorld, pages: Pages) -> None:
    """A form needs the token that only a page of this browser has."""
    pages.get("/devices/sw1")
    status, _ = pages.post("/devices/sw1/act", csrf_token="", action="disable")
    assert status == 403
    assert targets.show(world.services.engine, "sw1", "snmp").enabled


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        ("/devices/nope", 404, "o device named"),
        ("/devices/sw1/plots?target=snmp&interface=eth9", 404, "has no interface"),
        ("/devices/sw1/plots?target=snmp&metric=nope", 404, "no such series"),
        ("/devices/sw1/plots?target=snmp", 422, "either an interface or a metric"),
        ("/devices/sw1/interfaces?range=3y", 422, "is none of the ranges"),
        ("/devices/sw1/plots?target=snmp&interface=eth1&table=nope", 404, "here is no plot"),
    ],
)
def test_a_wrong_address_says_what_is_wrong(
    pages: Pages, path: str, status: int, words: str
) -> None:
    """Nothing is replaced by a default."""
    assert words in pages.get(path, status)


def test_a_device_that_is_gone_says_what_became_of_it(world: DeviceWorld, pages: Pages) -> None:
    """When it was removed or which name it has now, and devices with a similar name."""
    engine, author = world.services.engine, authors.author(world.services, person("kim"))
    devices.remove(engine, ["other"], author)
    html = pages.get("/devices/other/config", 404)
    assert "No device named &#34;other&#34;." in html
    assert re.search(r"It was removed at 20\d\d-\d\d-\d\dT[\d:]+Z by kim\.", html)
    assert "Devices with a similar name" in html
    device_actions.edit(world.services, author, "sw1", {"name": "core-1"})
    html = pages.get("/devices/sw1", 404)
    assert "It got the name core-1 at " in html
    assert '<a href="../devices/core-1">Device core-1</a>' in html
    assert "It was" not in pages.get("/devices/never-there", 404)
    assert "by kim" not in reader(world).get("/devices/other", 404)
    limited = Pages(api_clients.client(world.services, [Scope.ADMIN], site="east"))
    assert "removed" not in limited.get("/devices/other", 404)


def test_what_a_device_lacks_leads_back_to_it(pages: Pages) -> None:
    """An interface that is gone is not the end of the way."""
    html = pages.get("/devices/sw1/plots?target=snmp&interface=eth9", 404)
    assert '<a href="../../devices/sw1">Device sw1</a>' in html


def test_a_device_without_targets_says_what_to_type(pages: Pages) -> None:
    """Every page of it is there."""
    assert "poller target add other" in pages.get("/devices/other")
    for page in ("interfaces", "gauges", "metrics", "events", "config"):
        pages.get(f"/devices/other/{page}")


def test_without_the_library_the_pictures_of_the_server_stay(
    world: DeviceWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An installation that was built without npm names no file that it does not have."""
    found = assets.load()
    with_library = [name for name in found.by_name if not name.startswith("uPlot")]
    fewer = Assets({name: found.by_name[name] for name in with_library}, found.by_path, found.build)
    monkeypatch.setattr(assets, "load", lambda: fewer)
    pages = Pages(api_clients.client(world.services))
    html = pages.get("/devices/sw1/plots?target=snmp&interface=eth1")
    assert "data-library" not in html
    assert "<svg" in html


def test_every_page_is_within_its_budget(services: Services) -> None:
    """48 ports on a page: at most 20 KB compressed and 30 elements a row."""
    world = DeviceWorld(services, minutes=1_440, ports=48)
    client = api_clients.client(world.services)
    for page in ("", "/interfaces", "/gauges", "/metrics", "/plots?target=snmp&interface=eth1"):
        response = client.get(f"/devices/sw1{page}", headers={"Accept": "text/html"})
        assert int(response.headers["Content-Length"]) <= 20_480, page
    html = client.get("/devices/sw1/interfaces").text
    rows = html[html.index("<tbody>") : html.index("</tbody>")].split("</tr>")[:-1]
    assert len(rows) == 48
    assert max(row.count("<") - row.count("</") for row in rows) <= 30
