"""The pages of the fleet on real stores: what they show, what they refuse, and their actions."""

from __future__ import annotations

import csv
import html
import io
import re
import shlex
from typing import Any

import pytest

from poller.bootstrap import Services
from poller.db.inventory import devices, imports
from poller.db.record import run_ledger
from poller.domain.access.scopes import Role
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.domain.record.overview import Worker
from poller.service.fleet import fleet_picture
from poller.state.cluster import worker_registry
from tests.integration import test_target_pages as inventory
from tests.integration.access_sites import BROWSER, Site, form_token, log_in
from tests.integration.audited_actions import audited


@pytest.fixture
def site(services: Services) -> Site:
    """60 devices at two sites and at none, with targets in every state."""
    imports.apply_import(services.engine, [inventory.row(number) for number in range(60)])
    inventory.place(services)
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    client = site.client(**BROWSER)
    client.headers.pop("accept", None)
    client.headers["accept"] = "text/html"
    return client


def rows(page: str) -> list[str]:
    """The names of the devices of a page."""
    return [html.unescape(name) for name in re.findall(r'<tr data-key="([^"]*)"', page)]


def test_every_page_is_reached_by_the_navigation(browser: Any) -> None:
    """Each link of the frame leads to a page with the same frame."""
    page = browser.get("/").text
    rooms = re.search(r'<nav class="rooms".*?</nav>', page, re.DOTALL)
    assert rooms
    for path in re.findall(r'href="([^"]*)"', rooms[0]):
        found = browser.get(f"/{path.removeprefix('./')}")
        assert found.status_code == 200, path
        assert '<nav class="rooms"' in found.text
        assert 'data-cell="health"' in found.text or "/wall" in found.url.path


def test_the_list_pages_through_all_devices_once(browser: Any) -> None:
    """Following the next page shows each device once, in the order of names."""
    seen: list[str] = []
    address = "/devices"
    for _ in range(5):
        page = browser.get(address).text
        seen += rows(page)
        following = re.search(r'<a href="([^"]*)" rel="next"', page)
        if not following:
            break
        address = "/devices" + html.unescape(following[1])
    assert len(seen) == len(set(seen)) == 60
    assert seen == sorted(seen)


def test_a_row_says_what_is_wrong(browser: Any) -> None:
    """The code, the message and the age of the last good poll are texts of the row."""
    page = browser.get("/devices", params={"where": "code:unreachable"}).text
    assert rows(page)
    assert "unreachable: a &#34;b&#34;, c" in page
    assert "■" in page


@pytest.mark.parametrize("where", ["state:nonsense", "site:nowhere"])
def test_a_file_of_a_wrong_filter_is_an_error(browser: Any, where: str) -> None:
    """Not a file that ends after its heading."""
    refused = browser.get("/devices/-/devices.csv", params={"where": where})
    assert refused.status_code == 422
    assert where.partition(":")[2] in refused.text


def test_a_name_in_a_command_is_one_word_of_it(browser: Any, site: Site) -> None:
    """A command is copied into a shell, and a name may have any character but blanks."""
    engine = site.services.engine
    target = TargetDraft(name="snmp", collector="snmp")
    devices.add(engine, DeviceDraft("a;reboot", "192.0.2.1", site="b'$(halt)"), [target])
    pages = ["/devices?where=name:a;reboot", "/sites", "/devices/a;reboot"]
    pages += [f"/devices/a;reboot/{tab}" for tab in ("interfaces", "gauges", "metrics")]
    pages += [f"/devices/a;reboot/{tab}" for tab in ("events", "config", "targets/snmp")]
    for address in pages:
        page = browser.get(address)
        assert page.status_code == 200, address
        found = re.findall(r'data-command="([^"]*)"|<code>(poller [^<]*)</code>', page.text)
        assert found, address
        for command in (html.unescape("".join(each)) for each in found):
            words = list(shlex.shlex(command, posix=True, punctuation_chars=True))
            assert not {";", "(", ")"} & set(words), command


@pytest.mark.parametrize(
    ("where", "words"),
    [
        ("state:fine", "there is no state"),
        ("colour:red", "has no key"),
        ("site:nowhere", "nowhere"),
        ("&#39;", "cannot be read"),
    ],
)
def test_a_wrong_search_keeps_its_text_and_says_what_to_do(
    browser: Any, where: str, words: str
) -> None:
    """The page is there with the field, and no row."""
    typed = html.unescape(where)
    page = browser.get("/devices", params={"where": typed})
    assert page.status_code == 422
    assert words in page.text.lower()
    assert f'value="{html.escape(typed).replace("&#x27;", "&#39;")}"' in page.text
    assert rows(page.text) == []


def test_a_typed_word_is_a_part_of_a_name(browser: Any) -> None:
    """The command beside the list has the full filter."""
    page = browser.get("/devices", params={"where": "sw-0"}).text
    assert set(rows(page)) == {f"sw-{n:02}" for n in (1, 3, 5, 7, 9)}
    assert "poller device list --where &#39;name:" in page


def test_an_empty_result_names_the_key_to_remove(browser: Any) -> None:
    """Each link leaves one key out."""
    page = browser.get("/devices", params={"where": "name:rt-02 tag:new"}).text
    assert "No device matches." in page
    assert "Search without name:" in page
    assert "Search without tag:" in page


def test_causes_lead_to_exactly_those_devices(site: Site, browser: Any) -> None:
    """The number of a cause is that of the list behind its link."""
    picture = fleet_picture.picture(site.services)
    assert picture.causes
    overview = browser.get("/").text
    links = re.findall(r'data-where href="devices\?where=([^"]*code[^"]*)"', overview)
    links = [link for link in links if link]
    assert len(links) == len(picture.causes)
    for cause, link in zip(picture.causes, links, strict=True):
        assert len(rows(browser.get(f"/devices?where={link}").text)) == cause.devices
    assert f"{picture.failing_devices} of 60 devices" in overview


def test_facets_count_and_narrow(browser: Any) -> None:
    """A facet adds its value to the filter, and the chosen one takes it away."""
    page = browser.get("/devices/-/facets", params={"where": "site:fra"}).text
    assert "<b>20 devices</b>" in page
    assert "where=site%3Afra+state%3Afailing" in page
    chosen = re.search(r'<a href="([^"]*)" aria-current="true">fra', page)
    assert chosen
    assert "where" not in chosen[1]


def test_the_file_has_every_row_and_no_formula(site: Site, browser: Any) -> None:
    """A cell that a spreadsheet would calculate is quoted."""
    device = inventory.DeviceDraft(name="=1+1", address="10.9.9.9")
    devices.add(site.services.engine, device)
    answer = browser.get("/devices/-/devices.csv")
    assert answer.headers["content-type"].startswith("text/csv")
    found = list(csv.DictReader(io.StringIO(answer.text)))
    assert len(found) == 61
    assert found[0]["name"] == "'=1+1"


def test_the_strip_has_the_worst_poll_of_each_half_hour(site: Site, browser: Any) -> None:
    """A device without runs has gaps only."""
    services = site.services
    [target] = list(inventory.targets.of_device(services.engine, "sw-01"))
    now_ms = services.board.now_ms()
    runs = [run(target.id, now_ms - ago) for ago in (0, 3_600_000)]
    run_ledger.write(services.engine, runs)
    found = browser.get("/devices/-/strips", params={"name": ["sw-01", "sw-03"]}).json()
    assert "2 good, 46 without a poll" in found["sw-01"]
    assert "48 without a poll" in found["sw-03"]


def run(target_id: int, plan_ms: int) -> Any:
    from poller.domain.failures.outcome import Result
    from poller.domain.record.run import Run

    return Run(
        target_id=target_id,
        plan_ms=plan_ms,
        attempt=1,
        outcome=Result.OK,
        error_code="",
        message="",
        started_ms=plan_ms,
        finished_ms=plan_ms + 5,
        samples=1,
        runner="w",
        token="t",
    )


def test_disabling_many_asks_first_and_can_be_taken_back(site: Site, browser: Any) -> None:
    """The first answer says how many; the confirmed one does it; the way back is for those only."""
    page = browser.get("/devices", params={"where": "site:fra"}).text
    form = {"csrf_token": form_token(page), "where": "site:fra", "action": "disable"}
    asked = browser.post("/devices/-/bulk", data=form)
    assert "Disable 20 devices?" in asked.text
    assert "poller device edit --where site:fra --disable" in asked.text
    enabled = [row.name for row in devices.listing(site.services.engine, limit=None) if row.enabled]

    refused = browser.post("/devices/-/bulk", data={**form, "confirm": "19"})
    assert refused.status_code == 409
    done = browser.post("/devices/-/bulk", data={**form, "confirm": "20"})
    assert "devices disabled" in done.text
    undo = re.search(r'name="undo" value="([^"]*)"', done.text)
    assert undo
    back = {"csrf_token": form_token(done.text), "action": "undo", "undo": undo[1]}
    number = re.search(
        r'name="confirm" value="(\d+)"', browser.post("/devices/-/bulk", data=back).text
    )
    assert number
    browser.post("/devices/-/bulk", data={**back, "confirm": number[1]})
    now = [row.name for row in devices.listing(site.services.engine, limit=None) if row.enabled]
    assert now == enabled


def test_a_form_without_its_token_changes_nothing(site: Site, browser: Any) -> None:
    """On loopback too, where nobody has a session."""
    browser.get("/devices")
    form = {"where": "site:fra", "action": "disable", "confirm": "20"}
    assert browser.post("/devices/-/bulk", data=form).status_code == 403
    assert browser.post("/devices/-/bulk", data={**form, "csrf_token": "0" * 64}).status_code == 403
    assert all(row.enabled for row in devices.listing(site.services.engine, limit=None)[:1])


def test_a_viewer_sees_no_action_and_is_refused(site: Site) -> None:
    """What one may not do is not shown, and the server refuses it anyway."""
    site.user(role=Role.VIEWER)
    browser = site.client(**BROWSER)
    log_in(browser)
    page = browser.get("/devices").text
    assert rows(page)
    assert 'name="action"' not in page
    form = {
        "csrf_token": form_token(page),
        "where": "site:fra",
        "action": "disable",
        "confirm": "20",
    }
    assert browser.post("/devices/-/bulk", data=form).status_code == 403


def act_at_site(browser: Any, action: str, **fields: str) -> Any:
    """Press a button of a site, or confirm."""
    form = {"csrf_token": form_token(browser.get("/sites").text), "action": action}
    return browser.post("/devices/-/bulk", data={**form, "where": "site:fra", **fields})


def confirm(browser: Any, action: str, asked: Any, **fields: str) -> Any:
    number = re.search(r'name="confirm" value="(\d+)"', asked.text)
    assert number
    return act_at_site(browser, action, confirm=number[1], **fields)


def test_a_site_is_paused_and_resumed(site: Site, browser: Any) -> None:
    """The button of a site leads to the same questions as the list of devices."""
    assert "Pause 20 devices" in act_at_site(browser, "pause").text
    values = {"go": "yes", "length": "2h", "reason": "roof works"}
    asked = act_at_site(browser, "pause", **values)
    assert "poller breaker open --where site:fra --for 2h" in asked.text
    assert audited(site.services) == []
    done = confirm(browser, "pause", asked, **values)
    opened = re.search(r"(\d+) targets paused until", done.text)
    assert opened
    [row] = audited(site.services)
    assert (row.action, row.subject, row.count) == ("breaker.open", "site:fra", int(opened[1]))
    back = confirm(browser, "reset", act_at_site(browser, "reset"))
    assert f"{opened[1]} breakers reset" in back.text


def test_a_site_is_polled_now(site: Site, browser: Any) -> None:
    """Its page of results is a link away."""
    has_snmp = Worker("w1@a", 0, 1, 0, 0, 2**20, queues=["poll.snmp", "poll.ping"])
    worker_registry.announce(site.services.redis, site.services.keys, has_snmp)
    asked = act_at_site(browser, "poll")
    assert "poller poll --where site:fra" in asked.text
    done = confirm(browser, "poll", asked)
    assert "will be polled at once" in done.text
    ticket = re.search(r'href="[^"]*polls/([0-9a-f]+)"', done.text)
    assert ticket
    assert browser.get(f"/devices/-/polls/{ticket[1]}").status_code == 200


def test_a_site_offers_its_actions_to_those_who_may(site: Site) -> None:
    """A maintenance is filled in with the site; a viewer has no button."""
    for role, shown in ((Role.OPERATOR, True), (Role.VIEWER, False)):
        site.user(role.value, role)
        browser = site.client(**BROWSER)
        log_in(browser, role.value)
        page = browser.get("/sites").text
        assert ('value="pause"' in page) is shown
        assert ('href="maintenance?where=site%3Afra#add"' in page) is shown
        assert act_at_site(browser, "pause").status_code == (200 if shown else 403)


def test_the_sites_are_listed_with_the_worst_first(browser: Any) -> None:
    """The wall has them as tiles."""
    page = browser.get("/sites").text
    assert {"fra", "ber"} <= set(rows(page))
    wall = browser.get("/wall").text
    assert "<b>fra</b>" in wall


@pytest.mark.parametrize(
    ("word", "offered"),
    [
        ("si", ["site:"]),
        ("site:f", ["site:fra"]),
        ("state:fai", ["state:failing"]),
        ("site:fra,b", ["site:fra,ber"]),
        ("name:s", []),
    ],
)
def test_a_filter_is_completed(browser: Any, word: str, offered: list[str]) -> None:
    """Keys and the values of keys that have few."""
    assert browser.get("/devices/-/completions", params={"word": word}).json() == offered


@pytest.mark.parametrize("sort", ["worst", "last_ok", "site"])
def test_a_sorted_list_pages_through_all_devices_once(browser: Any, sort: str) -> None:
    """The order is in the address, in every link of the page, and in the command."""
    seen: list[str] = []
    address = f"/devices?sort={sort}&where=name:*"
    for _ in range(5):
        page = browser.get(address).text
        seen += rows(page)
        assert f"--sort {sort}" in page
        assert f'name="sort" value="{sort}"' in page
        following = re.search(r'<a href="([^"]*)" rel="next"', page)
        if not following:
            break
        assert f"sort={sort}" in following[1]
        address = "/devices" + html.unescape(following[1])
    assert len(seen) == len(set(seen)) == 60
    assert seen != sorted(seen)


def test_an_unknown_order_is_that_of_names(browser: Any) -> None:
    """An address of another release still leads to a list."""
    page = browser.get("/devices?sort=colour").text
    assert rows(page) == sorted(rows(page))
    assert browser.get("/devices?sort=worst&after=nonsense").status_code == 422


def test_the_api_sorts_as_the_page_does(browser: Any) -> None:
    """One function of the service has the orders."""
    page = rows(browser.get("/devices?sort=worst").text)
    found = browser.get("/api/v1/devices?sort=worst&limit=30").json()
    assert [item["name"] for item in found["items"]] == page[:30]
    more = browser.get(f"/api/v1/devices?sort=worst&limit=20&cursor={found['next']}").json()
    assert [item["name"] for item in more["items"]] == page[30:50]
