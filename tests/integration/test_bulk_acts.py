"""Acts on all devices that match, by page: values, dry run, number, result, and a way back."""

from __future__ import annotations

import html
import re
import shlex
import time
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from poller import errors
from poller.bootstrap import Services
from poller.cli import main
from poller.db.access import audit_rows
from poller.db.access.audit_rows import AuditQuery
from poller.db.inventory import credential_rows, devices, imports, targets
from poller.db.inventory.inventory_feed import Author
from poller.db.record import dead_letter_rows
from poller.domain.access import scopes
from poller.domain.access.scopes import Role, Scope
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.inventory import target_filter
from poller.service import bulk_confirmation
from poller.service.fleet import act_runs, act_undo, fleet_bulk
from poller.service.fleet.fleet_plan import Action, FleetDone, FleetPlan
from poller.state.board.breakers import Breakers
from poller.state.requests import kept_acts
from tests.integration import test_target_pages as inventory
from tests.integration.access_sites import BROWSER, KIM, Site, browser_of, form_token

WHERE = "site:fra"


@pytest.fixture
def site(services: Services) -> Site:
    """60 devices at two sites and at none, with targets in every state."""
    imports.apply_import(services.engine, [inventory.row(number) for number in range(60)])
    inventory.place(services)
    return Site(services)


@pytest.fixture
def browser(site: Site) -> Any:
    client = site.client(**BROWSER)
    client.headers["accept"] = "text/html"
    return client


def send(browser: Any, action: str, **fields: str) -> Any:
    """Send the form of an act, as a page does."""
    page = browser.get("/devices?where=tag:absent").text
    form = {"csrf_token": form_token(page), "where": WHERE, "action": action, **fields}
    return browser.post("/devices/-/bulk", data=form)


def confirm(browser: Any, planned: Any, **changes: str) -> Any:
    """Send the form of a plan with its number."""
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', planned.text)
    form = {name: html.unescape(text) for name, text in fields}
    return browser.post("/devices/-/bulk", data={**form, **changes})


def act(browser: Any, action: str, **fields: str) -> Any:
    """Plan an act and confirm it."""
    return confirm(browser, send(browser, action, go="yes", **fields))


def take_back(browser: Any, done: Any) -> Any:
    """Plan the way back of an act and confirm it."""
    fields = re.findall(r'<input type="hidden" name="([^"]*)" value="([^"]*)"', done.text)
    planned = browser.post("/devices/-/bulk", data=dict(fields))
    return confirm(browser, planned)


def here(site: Site) -> list[devices.Device]:
    found = devices.listing(site.services.engine, limit=None)
    return [device for device in found if device.site == "fra"]


def tags(site: Site) -> Mapping[str, tuple[str, ...]]:
    return {device.name: device.tags for device in here(site)}


def intervals(site: Site) -> Mapping[str, int]:
    found = targets.listing(site.services.engine, limit=None)
    return {row.full_name: row.interval_ms for row in found if row.site == "fra"}


def opened(site: Site) -> dict[int, str]:
    now_ms = site.services.board.now_ms()
    return {
        key: each.reason for key, each in Breakers(site.services.board).openings(now_ms).items()
    }


def last_entry(site: Site) -> Any:
    return audit_rows.listing(site.services.engine, AuditQuery(limit=1))[0]


def test_an_act_with_values_asks_for_them_first(browser: Any) -> None:
    """The form has the number of devices, and nothing is done."""
    page = send(browser, "pause").text
    assert "Pause 20 devices" in page
    assert 'name="length"' in page
    assert 'name="reason"' in page
    assert send(browser, "pause", where="tag:absent").status_code == 404


@pytest.mark.parametrize(
    ("action", "fields", "words"),
    [
        ("pause", {"length": "soon", "reason": "why"}, "is not a duration"),
        ("pause", {"length": "2h", "reason": " "}, "it is empty"),
        ("pause", {"length": "90d", "reason": "why"}, "not between 1s and 30d"),
        ("interval", {"interval": "1ms"}, "out of bounds"),
        ("tags", {}, "no tag to add or to remove"),
        ("tags", {"add": "a,b"}, "a,b"),
        ("credential", {"credential": "nothing"}, "nothing"),
        ("domain", {"requires": "dmz"}, "is not KEY=VALUE"),
    ],
)
def test_a_wrong_value_keeps_what_was_typed(
    browser: Any, site: Site, action: str, fields: dict[str, str], words: str
) -> None:
    """The form names the field and what to do; nothing is changed."""
    before = here(site)
    page = send(browser, action, go="yes", **fields)
    assert page.status_code in (404, 422)
    assert words in html.unescape(page.text)
    assert 'aria-invalid="true"' in page.text
    for text in fields.values():
        if action != "credential":
            assert f'value="{text.strip()}"' in page.text
    assert here(site) == before


def test_a_pause_has_a_reason_and_ends_exactly_for_those_that_were_paused(
    browser: Any, site: Site
) -> None:
    """A target that was paused before keeps its pause when the new one is taken back."""
    before = opened(site)
    planned = send(browser, "pause", go="yes", length="2h", reason="switch swap")
    number = re.search(r"Pause (\d+) targets for 2h\?", planned.text)
    assert number
    assert (
        "poller breaker open --where site:fra --for 2h --reason &#39;switch swap&#39;"
        in planned.text
    )
    done = confirm(browser, planned)
    paused = {key for key, reason in opened(site).items() if reason == "switch swap"}
    assert f"{len(paused)} targets paused until" in done.text
    disabled = int(number[1]) - len(paused)
    assert f"{disabled} of them are disabled, and not polled anyway." in planned.text
    entry = last_entry(site)
    assert (entry.action, entry.subject, entry.count) == ("breaker.open", WHERE, len(paused))
    taken = take_back(browser, done)
    assert f"{len(paused)} targets taken back." in taken.text
    assert set(opened(site)) == set(before) - paused


def test_resuming_is_for_those_that_are_paused(browser: Any, site: Site) -> None:
    """A breaker that failures opened stays; without a pause there is nothing to resume."""
    act(browser, "pause", length="1h", reason="why")
    states = Breakers(site.services.board).list_open(site.services.board.now_ms())
    by_failures = {each.target_id for each in states if not each.by_hand}
    done = act(browser, "resume")
    assert "breakers reset" in done.text
    ids = {row.id for row in targets.listing(site.services.engine, limit=None) if row.site == "fra"}
    assert not ids & set(opened(site))
    states = Breakers(site.services.board).list_open(site.services.board.now_ms())
    assert {each.target_id for each in states if not each.by_hand} >= by_failures - ids
    nothing = send(browser, "resume", where="site:fra")
    assert nothing.status_code == 404
    assert "is paused by hand" in nothing.text


def test_an_interval_is_taken_back_to_what_each_target_had(browser: Any, site: Site) -> None:
    """Targets that somebody changed meanwhile are left alone."""
    name = here(site)[0].name
    main.run(["target", "edit", f"{name}/snmp", "--interval", "5m"])
    before = intervals(site)
    planned = send(browser, "interval", go="yes", interval="30s")
    assert "targets every 30s?" in planned.text
    assert "poller target edit --where site:fra --interval 30s" in planned.text
    done = confirm(browser, planned)
    assert set(intervals(site).values()) == {30_000}
    other = next(full for full in before if not full.startswith(f"{name}/"))
    main.run(["target", "edit", other, "--interval", "10m"])
    taken = take_back(browser, done)
    assert "taken back" in taken.text
    assert intervals(site) == {**before, other: 600_000}
    assert last_entry(site).action == "target.edit"


def test_tags_are_added_and_removed_and_taken_back(browser: Any, site: Site) -> None:
    """Other tags stay, and devices that were as wanted are not touched by the way back."""
    before = tags(site)
    planned = send(browser, "tags", go="yes", add="core spare", remove="new")
    assert "Change the tags of 20 devices: add core spare, remove new?" in planned.text
    assert "20 devices change." in planned.text
    done = confirm(browser, planned)
    assert all(
        {"core", "spare"} <= set(found) and "new" not in found for found in tags(site).values()
    )
    again = send(browser, "tags", go="yes", add="core spare", remove="new")
    assert "0 devices change." in again.text
    assert "20 are so already." in again.text
    take_back(browser, done)
    assert tags(site) == before


def test_a_credential_is_changed_for_all_and_taken_back(browser: Any, site: Site) -> None:
    """The form offers the stored ones; "none" takes it away."""
    for name in ("ro", "rw"):
        credential_rows.add(site.services.engine, name, "snmp_community", "sealed")
    page = send(browser, "credential").text
    assert '<option value="rw">rw</option>' in page
    first = here(site)[0].name
    main.run(["device", "edit", first, "--credential", "ro"])
    done = act(browser, "credential", credential="rw")
    assert {device.credential for device in here(site)} == {"rw"}
    take_back(browser, done)
    assert {device.name: device.credential for device in here(site) if device.credential} == {
        first: "ro"
    }
    act(browser, "credential", credential="")
    assert {device.credential for device in here(site)} == {""}


def test_devices_move_to_another_domain_and_back(browser: Any, site: Site) -> None:
    """A domain is the tags that workers must have."""
    done = act(browser, "domain", requires="zone=dmz rack=7")
    assert {tuple(sorted(device.requires.items())) for device in here(site)} == {
        (("rack", "7"), ("zone", "dmz"))
    }
    take_back(browser, done)
    assert all(not device.requires for device in here(site))


def test_letters_of_the_matching_devices_are_requeued(browser: Any, site: Site) -> None:
    """The result leads to the polls; without a letter there is nothing to do."""
    assert send(browser, "requeue").status_code == 404
    now_ms = site.services.board.now_ms()
    parked = [
        row.id for row in targets.listing(site.services.engine, limit=None) if row.site == "fra"
    ]
    letters = [
        Letter(key, now_ms, Reason.AUTH_FAILED, "auth_failed", "no", now_ms, now_ms, now_ms, 3)
        for key in parked[:6]
    ]
    dead_letter_rows.write(site.services.engine, letters)
    planned = send(browser, "requeue")
    number = dead_letter_rows.count(site.services.engine, dead_letter_rows.Wanted())
    assert f"<h1>Requeue {number} dead letters?" in planned.text
    assert "poller deadletter requeue --where site:fra" in planned.text
    assert "See the results arrive" in confirm(browser, planned).text


def test_another_number_than_the_confirmed_one_shows_the_plan_again(
    browser: Any, site: Site
) -> None:
    """Nothing is done, and the page asks with the new number."""
    planned = send(browser, "tags", go="yes", add="core")
    refused = confirm(browser, planned, confirm="19")
    assert refused.status_code == 409
    assert "By now 20 match." in refused.text
    assert 'name="confirm" value="20"' in refused.text
    missing = confirm(browser, planned, confirm="")
    assert missing.status_code == 409
    assert all("core" not in found for name, found in tags(site).items() if name == "sw-03")


def test_a_large_number_is_typed(browser: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A button is too easy for so many; polls and letters need none."""
    monkeypatch.setattr(bulk_confirmation, "MANY", 5)
    planned = send(browser, "disable")
    assert "Type 20 to go on" in planned.text
    assert 'type="hidden" name="confirm"' not in planned.text
    assert "Type" not in send(browser, "poll").text


def test_what_was_taken_back_or_is_of_another_time_cannot_be_taken_back(
    browser: Any, site: Site
) -> None:
    """Rows that are as they were before have nothing to take back; a record lives for an hour."""
    done = act(browser, "disable")
    name = re.search(r'name="undo" value="([^"]*)"', done.text)
    assert name
    take_back(browser, done)
    again = send(browser, "undo", undo=name[1])
    assert again.status_code == 404
    assert "was changed again, or is gone" in again.text
    unknown = send(browser, "undo", undo="nothing")
    assert unknown.status_code == 404
    assert "cannot be taken back any more" in unknown.text


def test_more_rows_than_are_kept_have_no_way_back(
    browser: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page says so before it is done."""
    monkeypatch.setattr(act_undo, "MOST", 3)
    planned = send(browser, "disable")
    assert "no button takes that back" in planned.text
    assert "Take it back" not in confirm(browser, planned).text


def test_a_large_act_runs_beside_its_request(
    browser: Any, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page follows it, has the result, and the way back."""
    monkeypatch.setattr(act_runs, "LARGE", 5)
    begun = act(browser, "pause", length="1h", reason="why")
    assert begun.status_code == 303
    address = f"/devices/-/{begun.headers['location']}"
    page = _until_over(browser, address)
    assert "targets paused until" in page.text
    paused = {key for key, reason in opened(site).items() if reason == "why"}
    assert paused
    back = take_back(browser, page)
    assert back.status_code == 303
    page = _until_over(browser, f"/devices/-/{back.headers['location']}")
    assert f"{len(paused)} targets taken back." in page.text
    assert not paused & set(opened(site))


def _until_over(browser: Any, address: str) -> Any:
    until_mono = time.monotonic() + 20
    while True:
        page = browser.get(address)
        assert page.status_code == 200
        if "<progress" not in page.text:
            return page
        assert 'data-live="2"' in page.text
        assert time.monotonic() < until_mono
        time.sleep(0.05)


def test_an_act_that_fails_or_whose_process_ended_says_how_far_it_came(
    browser: Any, site: Site
) -> None:
    """It can be done again: what is done stays done."""

    def carry_out(tell: Any) -> FleetDone:
        raise errors.StoreUnavailable("cannot use Redis", "ConnectionError")

    names = [str(number) for number in range(9)]
    plan = FleetPlan(Action.PAUSE, "pause 9 targets", names, carry_out)
    name = act_runs.begin(site.services, KIM, plan, WHERE)
    page = _until_over(browser, f"/devices/-/acts/{name}")
    assert "Ended early" in page.text
    assert "Cannot use Redis (ConnectionError)." in page.text
    record = {"phrase": "pause 9 targets", "total": 9, "done": 4, "site": None, "seen_ms": 1}
    kept_acts.keep_progress(site.services.redis, site.services.keys, "gone", record)
    lost = browser.get("/devices/-/acts/gone").text
    assert "web process that did it has ended" in lost
    assert "4 of 9 are done." in lost
    assert browser.get("/devices/-/acts/never").status_code == 404


def test_every_command_beside_a_plan_has_the_same_number(
    browser: Any, site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its dry run in a terminal says as many, and changes nothing."""
    credential_rows.add(site.services.engine, "ro", "snmp_community", "sealed")
    act(browser, "pause", length="1h", reason="it's new")
    values: dict[str, dict[str, str]] = {
        "pause": {"length": "2h", "reason": "it's new"},
        "resume": {},
        "reset": {},
        "interval": {"interval": "2m"},
        "tags": {"add": "x y", "remove": "core"},
        "credential": {"credential": "ro"},
        "domain": {"requires": "zone=dmz"},
        "enable": {},
        "disable": {},
    }
    for action, fields in values.items():
        page = html.unescape(send(browser, action, go="yes", **fields).text)
        number = re.search(r'name="confirm" value="(\d+)"', page)
        command = re.search(r"<code>poller ([^<]* --dry-run)</code>", page)
        assert number, action
        assert command, action
        capsys.readouterr()
        assert main.run([*shlex.split(command[1]), "--json"]) == 0, command[1]
        assert f'"count": {number[1]}' in capsys.readouterr().out, action


@pytest.mark.parametrize("role", [Role.VIEWER, Role.OPERATOR])
def test_each_role_sees_and_may_do_its_acts(site: Site, role: Role) -> None:
    """The server refuses what the page does not show."""
    browser = browser_of(site, role)
    page = browser.get("/devices").text
    shown = set(re.findall(r'name="action" value="(\w+)"', page))
    every = {action.value for action in Action} - {"undo"}
    assert shown == (every if role is Role.OPERATOR else set())
    for action in sorted(every - shown):
        form = {"csrf_token": form_token(page), "where": WHERE, "action": action, "go": "yes"}
        assert browser.post("/devices/-/bulk", data=form).status_code == 403, action


def test_an_act_and_its_way_back_need_the_same_right(browser: Any, site: Site) -> None:
    """Who may operate may pause, and may not change the inventory, also not back."""
    done = act(browser, "tags", add="core")
    name = re.search(r'name="undo" value="([^"]*)"', done.text)
    assert name
    actor = replace(KIM, scopes=scopes.granted([Scope.OPERATE]))
    author = Author(actor)
    wanted = target_filter.parse(WHERE)
    with pytest.raises(errors.NotAllowed):
        fleet_bulk.plan(site.services, author, Action.TAGS, wanted, {"add": "core"})
    with pytest.raises(errors.NotAllowed):
        fleet_bulk.plan_undo(site.services, author, name[1])
    values = {"length": "1h", "reason": "why"}
    assert fleet_bulk.plan(site.services, author, Action.PAUSE, wanted, values).names
    elsewhere = Author(replace(KIM, site="ber"))
    with pytest.raises(errors.NotFound):
        fleet_bulk.plan_undo(site.services, elsewhere, name[1])
    with pytest.raises(errors.NotAllowed):
        fleet_bulk.plan(site.services, elsewhere, Action.TAGS, wanted, {"add": "core"})
