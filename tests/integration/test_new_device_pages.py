"""A device is added by page: a real agent answers a real worker, and nothing is stored before."""

from __future__ import annotations

import html
import re
import socket
import time
from collections.abc import Iterable, Iterator
from typing import Any

import pytest
import redis

from poller import errors
from poller.bootstrap import Services
from poller.db.inventory import devices, targets
from poller.domain.access.scopes import Role, Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.security import token_values
from poller.service.discovery import unsaved_devices
from poller.web.access import form_cookies
from tests.integration import api_clients, exporters
from tests.integration.access_sites import BROWSER, Site, form_token, log_in
from tests.integration.audited_actions import audited
from tests.integration.scrape_worlds import ScrapeWorld

ADD = "/devices/-/add"
SECRET = "public"
WRONG = "planted-not-the-community"


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    """An snmpd that serves the tree of this machine."""
    with exporters.snmpd(tmp_path_factory.mktemp("machine")) as port:
        yield port


@pytest.fixture
def world(services: Services, monkeypatch: pytest.MonkeyPatch) -> Iterator[ScrapeWorld]:
    """A worker, and two credentials of which the agent takes one."""
    made = ScrapeWorld(services, monkeypatch)
    made.announce_worker()
    made.add_credential("lab", SECRET)
    made.add_credential("wrong", WRONG)
    yield made
    made.close()


class Form:
    """A browser without scripts that fills the form in and takes its steps."""

    def __init__(self, client: api_clients.TestClient) -> None:
        self.client = client
        self.client.headers["accept"] = "text/html"
        self.status = 200
        self.page = ""
        self.to = ""

    def send(self, do: str, **fields: Any) -> str:
        """Send the form of the last page with changed fields; return the next page."""
        if not self.page:
            self.page = self.client.get(ADD).text
        token = token_values.form_token(self.client.cookies[form_cookies.PLAIN])
        sent = {**form_of(self.page), "csrf_token": token, "do": do, **fields}
        answer = self.client.post(ADD, data=sent, follow_redirects=False)
        self.status, self.page = answer.status_code, answer.text
        self.to = answer.headers.get("location", "")
        return self.page


def form_of(page: str) -> dict[str, list[str]]:
    """The fields of the form of a page, as a browser would send them."""
    part = page[page.index('<form class="edit"') :].partition("</form>")[0]
    found: dict[str, list[str]] = {}
    for tag in re.findall(r"<input[^>]*>", part):
        name, value = _attribute(tag, "name"), _attribute(tag, "value")
        if 'type="checkbox"' not in tag or " checked" in tag:
            found.setdefault(name, []).append(value)
    for name, options in re.findall(r'<select[^>]*name="([^"]*)"[^>]*>(.*?)</select>', part):
        chosen = re.search(r'<option(?: value="([^"]*)")? selected>([^<]*)', options)
        found[name] = [html.unescape(chosen[1] or "") if chosen else ""]
    return found


def _attribute(tag: str, name: str) -> str:
    found = re.search(rf' {name}="([^"]*)"', tag)
    return html.unescape(found[1]) if found else ""


@pytest.fixture
def form(world: ScrapeWorld) -> Iterator[Form]:
    yield from forms(world)


def forms(
    world: ScrapeWorld, scopes: Iterable[Scope] = api_clients.EVERYTHING, site: str | None = None
) -> Iterator[Form]:
    """A form with these rights, in a web process with one event loop."""
    with api_clients.client(world.services, scopes, site) as client:
        yield Form(client)
        client.app.state.exporter.close()  # type: ignore[attr-defined]


def at(port: int, **more: Any) -> dict[str, Any]:
    return {"address": f"127.0.0.1:{port}", "credential": "lab", **more}


def nothing_is_stored(world: ScrapeWorld) -> bool:
    try:
        devices.show(world.services.engine, "sw1")
    except errors.NotFound:
        return True
    return False


def test_a_device_is_found_tested_and_added(world: ScrapeWorld, form: Form, agent: int) -> None:
    """Each step keeps what the one before found; the first poll then reads the same values."""
    found = html.unescape(form.send("look", **at(agent)))
    assert form.status == 200
    name = re.search(r"<dt>sysName</dt><dd>([^<]*)", found)
    assert name
    assert re.search(rf'name="name" value="{re.escape(name[1])}"', found)
    assert "<dt>sysDescr</dt><dd>Linux" in found
    assert f"port={agent} modules=system,if_mib" in found
    assert [each.discovers for each in world.sent] == [True] * len(world.sent)

    tested = form.send("test", name="sw1", target=["0", "1"])
    assert len(re.findall(r"[\d,]+ values in \d+", tested)) == 2, "snmp, and ping without a login"
    assert "sysUpTime" in tested
    assert nothing_is_stored(world)

    form.send("add", target="0")
    assert (form.status, form.to) == (303, "../sw1?did=add")
    device = devices.show(world.services.engine, "sw1")
    [target] = targets.of_device(world.services.engine, "sw1")
    assert (device.address, device.credential) == ("127.0.0.1", "lab")
    assert (target.collector, target.options["port"]) == ("snmp", agent)
    assert isinstance(target.options["modules"], list)
    assert "sw1: added" in form.client.get("/devices/sw1?did=add").text

    rows = [(row.action, row.subject) for row in audited(world.services)]
    assert rows == [
        ("device.discover", "127.0.0.1"),
        ("credential.open", "lab"),
        ("device.test_poll", "127.0.0.1"),
        ("credential.open", "lab"),
        ("device.add", "sw1"),
    ]
    assert {each.credential_id for each in world.sent if each.collector == "snmp"} == {1}


def test_a_wrong_community_is_said_clearly(
    world: ScrapeWorld,
    form: Form,
    agent: int,
    redis_client: redis.Redis,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The credential is named, with what silence means; its secret is nowhere."""
    monkeypatch.setattr(unsaved_devices, "LONGEST_S", 1.5)
    found = html.unescape(form.send("look", **at(agent, credential="wrong")))
    assert re.search(r"<b>snmp</b> with wrong: no (complete )?answer", found)
    assert "a wrong community is answered by silence" in found
    assert WRONG not in found
    text = f"port={agent} modules=system timeout=0.2 retries=0"
    sent = {"rows": "1", "t.0.collector": "snmp", "t.0.options": text, "target": "0"}
    tested = html.unescape(form.send("test", **at(agent, credential="wrong", **sent)))
    assert "■ failed" in tested
    assert "timeout: no answer" in tested
    assert "a wrong community is answered by silence" in tested
    assert WRONG not in tested
    messages = "".join(each.to_json() for each in world.sent)
    kept = [str(redis_client.dump(key)) for key in redis_client.keys("*")]  # type: ignore[union-attr]
    assert WRONG not in messages + "".join(kept)


def test_further_credentials_are_tried_and_the_one_that_works_is_taken(
    world: ScrapeWorld, form: Form, agent: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It becomes the credential of the device."""
    monkeypatch.setattr(unsaved_devices, "LONGEST_S", 3.0)
    form.send("look", **at(agent, credential="wrong", **{"try": ["lab"]}))
    assert form_of(form.page)["credential"] == ["lab"]
    assert form_of(form.page)["target"] == ["0"]
    opened = [row.subject for row in audited(world.services) if row.action == "credential.open"]
    assert opened == ["wrong", "lab"]


def test_an_address_that_hangs_ends_in_time(form: Form, monkeypatch: pytest.MonkeyPatch) -> None:
    """Every collector has its reason; one that can be reached otherwise is suggested."""
    monkeypatch.setattr(unsaved_devices, "LONGEST_S", 1.5)
    with socket.socket() as listener, socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        listener.bind(("127.0.0.1", 0))
        listener.listen(8)
        port = listener.getsockname()[1]
        silent.bind(("127.0.0.1", port))
        began = time.monotonic()
        found = form.send("look", **at(port))
        assert time.monotonic() - began < 4
    assert form.status == 200
    reasons = dict(re.findall(r"<li><b>(\w+)</b>(?: with lab)?: ([^<]*)</li>", found))
    assert reasons.keys() == {"snmp", "http", "routeros"}
    assert "1 target suggested" in found  # ping


def test_a_target_by_hand_needs_no_answer(world: ScrapeWorld, form: Form) -> None:
    """The options are those that its collector declares; nobody is asked."""
    chosen = form.send("hand", address="192.0.2.7", name="sw1", by="ping")
    assert 'name="hand.option.count"' in chosen
    wrong = form.send("add", **{"hand.option.count": "many"})
    assert form.status == 422
    assert re.findall(r'id="(field-hand-[\w-]+)"[^>]*aria-invalid', wrong) == [
        "field-hand-option-count"
    ]
    assert 'value="many"' in wrong
    form.send("add", **{"hand.option.count": "7", "hand.interval": "30s"})
    assert form.to == "../sw1?did=add"
    [target] = targets.of_device(world.services.engine, "sw1")
    assert (target.interval_ms, target.options) == (30_000, {"count": 7})
    assert world.sent == []


MISTAKES: list[tuple[dict[str, Any], str, str]] = [
    ({"address": "10.0.0.0/8"}, "field-address", "is not an ip address or host name"),
    ({"address": ""}, "field-address", "the address is empty"),
    ({"t.0.interval": "soon"}, "t-0-interval", "is not a duration"),
    ({"t.0.options": "prot=1"}, "t-0-options", "unknown option"),
    ({"t.0.name": "a b"}, "t-0-name", "contains a blank"),
    ({"tags": "a,b"}, "field-tags", "is not one word"),
    ({"credential": "nobody"}, "field-credential", 'no credential named "nobody"'),
    ({"target": []}, "", "no target is chosen"),
]


@pytest.mark.parametrize("step", ["test", "add"])
def test_what_is_wrong_stands_beside_its_field(world: ScrapeWorld, form: Form, step: str) -> None:
    """Nothing is stored or sent, and what was typed stays."""
    good = {"rows": "1", "t.0.collector": "ping", "t.0.reason": "it answers", "target": "0"}
    for fields, wrong, text in MISTAKES:
        sent = {"address": "192.0.2.7", "credential": "", "tags": "", "name": "sw1", **good}
        empty = dict.fromkeys(("t.0.interval", "t.0.options", "t.0.name"), "")
        page = html.unescape(form.send(step, **{**sent, **empty, **fields}))
        assert form.status in (404, 422), text
        assert text in page.lower()
        marked = re.findall(r'id="([\w-]+)"[^>]*aria-invalid', page)
        assert marked == ([wrong] if wrong else []), text
        assert 'value="sw1"' in page
    assert nothing_is_stored(world)
    assert world.sent == []


def test_a_taken_name_stores_nothing_of_the_device(world: ScrapeWorld, form: Form) -> None:
    """All or nothing."""
    devices.add(world.services.engine, DeviceDraft("sw1", "192.0.2.1"), [])
    good = {"rows": "1", "t.0.collector": "ping", "target": "0"}
    page = form.send("add", address="192.0.2.7", name="sw1", **good)
    assert form.status == 409
    assert re.findall(r'id="([\w-]+)"[^>]*aria-invalid', page) == ["field-name"]
    assert targets.of_device(world.services.engine, "sw1") == []


def test_only_a_few_questions_are_asked_at_a_time(
    form: Form, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are told to try again; so is one with too many credentials."""
    many = ["a", "b", "c", "d", "e"]
    page = form.send("look", address="192.0.2.7", **{"try": many})
    assert form.status == 422
    assert "More than 4 credentials" in page
    monkeypatch.setattr(unsaved_devices, "MOST_AT_ONCE", 0)
    page = form.send("look", address="192.0.2.7", **{"try": []})
    assert form.status == 409
    assert "are being asked already" in page


def test_without_a_worker_the_page_says_that_nobody_asked(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target can still be added by hand."""
    world = ScrapeWorld(services, monkeypatch)
    try:
        for form in forms(world):
            page = form.send("look", address="192.0.2.7")
            assert "no running worker has the collector ping" in page
    finally:
        world.close()


def test_an_isolated_collector_does_not_run_in_the_worker_to_discover(
    services: Services, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its options are typed by hand."""
    world = ScrapeWorld(services, monkeypatch, isolated_collectors=("ping",))
    world.announce_worker()
    try:
        for form in forms(world):
            page = form.send("look", address="127.0.0.1")
            assert "ping does not discover here: it is isolated or quarantined" in page
    finally:
        world.close()


def test_a_worker_with_the_required_tags_asks(
    services: Services, monkeypatch: pytest.MonkeyPatch, agent: int
) -> None:
    """Also if no domain has exactly these tags yet, and a test poll goes to the same workers."""
    world = ScrapeWorld(services, monkeypatch)
    world.add_credential("lab", SECRET)
    world.announce_worker(zone="dmz", rack="4")
    try:
        for form in forms(world):
            page = form.send("look", **at(agent, requires="zone=lan"))
            assert "and the tag zone=lan" in page
            form.send("look", **at(agent, requires="zone=dmz"))
            assert {each.queue for each in world.sent} == {"scrape;rack=4;zone=dmz"}
            assert "values in" in form.send("test")
    finally:
        world.close()


def test_a_reader_gets_no_form_and_asks_nothing(world: ScrapeWorld) -> None:
    """The buttons are not shown either."""
    site = Site(world.services)
    site.user("viewer", Role.VIEWER)
    viewer = site.client(**BROWSER)
    log_in(viewer, "viewer")
    listed = viewer.get("/devices").text
    assert "devices/-/add" not in listed
    assert "devices/-/import" not in listed
    assert viewer.get(ADD).status_code == 403
    sent = {"csrf_token": form_token(listed), "do": "look", "address": "127.0.0.1"}
    assert viewer.post(ADD, data=sent).status_code == 403
    assert world.sent == []

    site.user("operator", Role.OPERATOR)
    operator = site.client(**BROWSER)
    log_in(operator, "operator")
    offered = operator.get("/devices").text
    assert 'href="devices/-/add"' in offered
    assert 'href="devices/-/import"' in offered
    assert operator.get(ADD).status_code == 200
    assert operator.post(ADD, data={"do": "look", "address": "127.0.0.1"}).status_code == 403
    assert world.sent == []


def test_a_token_of_one_site_asks_for_its_own_site_only(world: ScrapeWorld, agent: int) -> None:
    """With another site, or a credential that its site does not use, nobody is asked."""
    engine = world.services.engine
    draft = DeviceDraft("other", "192.0.2.2", site="west", credential="lab")
    devices.add(engine, draft, [TargetDraft("snmp", "snmp")])
    for form in forms(world, [Scope.INVENTORY], "west"):
        assert 'value="west"' in form.client.get(ADD).text
        assert "wrong" not in form.client.get(ADD).text  # the credential is not offered
        form.send("look", **at(agent, site="east"))
        assert form.status == 403
        form.send("look", **at(agent, site=""))
        assert form.status == 403
        form.send("look", **at(agent, site="west", credential="wrong"))
        assert form.status == 403
        form.send("look", **at(agent, site="west", **{"try": ["wrong"]}))
        assert form.status == 403
        assert world.sent == []
        form.send("look", **at(agent, site="west", **{"try": []}))
        assert form.status == 200
        form.send("add", name="sw1")
        assert form.to == "../sw1?did=add"
    assert devices.show(engine, "sw1").site == "west"


def test_suggested_options_survive_being_typed(world: ScrapeWorld, form: Form, agent: int) -> None:
    """What the service stores equals what the collector suggested."""
    from poller.service.inventory import collector_checks
    from poller.service.inventory_forms import csv_form
    from poller.web.pages.inventory import new_device_form

    suggestions = {
        "snmp": {"port": 1161, "modules": ["system", "if_mib"]},
        "routeros": {"port": 8728, "tls": False},
        "http": {"scheme": "https", "fingerprint": "ab" * 32, "expect": ["403", "200-299"]},
        "ping": {"count": 2},
    }
    registry = world.services.registry
    for collector, options in suggestions.items():
        words = new_device_form.option_words(options)
        typed = csv_form.options_cell(words) or {}
        stored = collector_checks.stored_options(registry, collector, typed)
        assert stored == collector_checks.stored_options(registry, collector, options)
